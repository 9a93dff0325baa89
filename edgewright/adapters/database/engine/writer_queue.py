"""The queue of one process's writers before a SQLite database, which has one writer at a time.

A fair queue is kinder than SQLite's polling for the lock. But while another process holds the lock, whoever stands
in the queue must not wait for as many time-outs as there are others before him: the time since he came counts.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from edgewright.adapters.database.engine.errors import stuck


@dataclass
class Turn:
    """Being the one writer of this process. ``patience``: seconds that it may wait for the lock; 0: one try."""

    patience: float
    has_begun: bool = False


class WriterQueue:
    """Gives turns in the order of coming.

    Args:
        database: how messages call it.
        lock_wait: seconds that a writer waits for the writer of another process, those in the queue included.
        queue_wait: seconds that a writer stands behind others of this process that do get on, or hang.
    """

    def __init__(self, database: str, *, lock_wait: float, queue_wait: float) -> None:
        self._database = database
        self._lock_wait = lock_wait
        self._queue_wait = queue_wait
        self._lock = asyncio.Lock()
        self._held_up_since: float | None = None
        """By the loop's clock: since then another process has let none of our writers begin."""

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Turn]:
        """Waits for one. Whoever has it sets ``has_begun`` once the transaction has begun.

        Raises:
            edgewright.errors.Waiting: code ``database_unavailable``: not in time.
        """
        now = asyncio.get_running_loop().time
        came = now()
        try:
            async with asyncio.timeout(self._queue_wait):
                await self._lock.acquire()
        except TimeoutError:
            raise stuck(self._database) from None
        began = now()
        turn = Turn(self._patience_of(came, began))
        try:
            yield turn
        finally:
            if turn.has_begun:
                self._held_up_since = None
            elif self._held_up_since is None:
                self._held_up_since = began
            self._lock.release()

    def _patience_of(self, came: float, now: float) -> float:
        if self._held_up_since is None:
            return self._lock_wait
        return max(0.0, self._lock_wait - (now - max(came, self._held_up_since)))
