"""What git answers, on its way to a client that may be slow."""

import asyncio
from collections.abc import AsyncIterator

from edgewright.adapters.git.kept_bytes import KeptBytes
from edgewright.errors import Waiting

PACE_SECONDS = 30.0
PACE_BYTES = 256 * 1024
"""While git waits for its client, the client takes at least so many bytes in ``PACE_SECONDS``."""


class ClientTooSlow(Exception):
    """The client does not keep pace; what it has not taken is dropped."""


class Relay:
    """Keeps what git answers until the client has taken it, so that git can end.

    Args:
        kept: empty.
        limit: bytes beyond which git waits for the client.
        pace_seconds: see ``PACE_BYTES``.
    """

    def __init__(self, kept: KeptBytes, *, limit: int, pace_seconds: float = PACE_SECONDS) -> None:
        self._kept = kept
        self._limit = limit
        self._pace_seconds = pace_seconds
        self._taken = 0
        self._ended = False
        self._more = asyncio.Event()
        self._less = asyncio.Event()

    async def put(self, piece: bytes) -> None:
        """Takes a piece of the answer; waits if there is no room for it.

        Raises:
            ClientTooSlow: it did not become free in time.
        """
        if not await self._keep(piece):
            await self._drained()
            self._kept.forget()
            self._taken = 0
            await self._kept.add(piece)
        self._more.set()

    def end(self) -> None:
        """There is no more to come."""
        self._ended = True
        self._more.set()

    def give_back(self) -> None:
        """Nobody takes any more."""
        self._kept.give_back()

    async def pieces(self) -> AsyncIterator[bytes]:
        """What was put, in order, until the end."""
        while True:
            self._more.clear()
            piece = await self._kept.at(self._taken)
            if piece:
                yield piece
                self._taken += len(piece)
                self._less.set()
            elif self._ended:
                return
            else:
                await self._more.wait()

    async def _keep(self, piece: bytes) -> bool:
        if len(self._kept) + len(piece) > self._limit:
            return False
        try:
            return await self._kept.add(piece)
        except Waiting:  # the disk is full, or gone: git waits for the client, as without it
            return False

    async def _drained(self) -> None:
        while self._taken < len(self._kept):
            before = self._taken
            try:
                async with asyncio.timeout(self._pace_seconds):
                    while self._taken < len(self._kept):
                        self._less.clear()
                        await self._less.wait()
            except TimeoutError:
                if self._taken - before < PACE_BYTES:
                    self._kept.forget()
                    raise ClientTooSlow from None
