"""Heartbeats whose answer waits until something is wanted of their edge.

An edge is behind NAT: nobody can call it. So it offers to wait, and what it waits for is told within a second of
being committed. Who waits costs a connection and some kilobytes; nothing is asked of the database on its behalf until
there is an event of its cluster. One query tells those of all clusters.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from uuid import UUID

import structlog

from edgewright.errors import EdgewrightError
from edgewright.ports.audit import AuditLog
from edgewright.ports.git_server import CommitId

LOOK_SECONDS = 0.25
"""Between two looks at what has happened, while anybody waits."""
CHARTS_SECONDS = 5.0
"""Between two looks at what all edges read."""
AT_ONCE = 25
"""Answers given after one look. What happens to all edges at once reaches them one after the other, so that they do
not come back for it at the same moment; edges with news of their own go first."""
RECENT_SECONDS = 5.0
"""An edge that begins to wait may have been read that long before."""

_log = structlog.get_logger("edgewright.api")


class Seat:
    """The place of one edge that waits."""

    __slots__ = ("_is_over", "_is_woken", "_waits")

    def __init__(self) -> None:
        self._is_woken = self._is_over = False
        self._waits: asyncio.Future[None] | None = None

    async def has_news(self, seconds: float) -> bool:
        """Waits so long, at most; returns whether something may be wanted that was not before.

        False also once the wait is over: another heartbeat of the edge has come, it has gone, or the gateway ends.
        """
        if not (self._is_woken or self._is_over) and seconds > 0:
            await self._wait(seconds)
        is_woken = self._is_woken and not self._is_over
        self._is_woken = False
        return is_woken

    async def _wait(self, seconds: float) -> None:
        """A future and a timer take less memory than an event and a timeout, and there are thousands."""
        loop = asyncio.get_running_loop()
        self._waits = loop.create_future()
        timer = loop.call_later(seconds, self._go_on)
        try:
            await self._waits
        finally:
            timer.cancel()
            self._waits = None

    def wake(self) -> None:
        self._is_woken = True
        self._go_on()

    def end(self) -> None:
        self._is_over = True
        self._go_on()

    def _go_on(self) -> None:
        if self._waits is not None and not self._waits.done():
            self._waits.set_result(None)


class HeldBeats:
    """Those of one gateway: one of each cluster.

    Args:
        stamp: changes with every write to the database; None, or an answer of None: that cannot be told.
        charts: the commit of the charts that all edges read.
        room: how many may wait at once; one more is answered at once, and its agent calls again as it would without.
        closing: set when the gateway is told to end.
        clock: monotonic, in seconds.
    """

    def __init__(
        self,
        audit: AuditLog,
        *,
        stamp: Callable[[], int | None] | None,
        charts: Callable[[], Awaitable[CommitId | None]],
        room: int,
        closing: asyncio.Event,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._audit = audit
        self._stamp = stamp
        self._charts = charts
        self._room = room
        self._closing = closing
        self._clock = clock
        self._seats: dict[UUID, Seat] = {}
        self._somebody = asyncio.Event()
        self._position: int | None = None
        self._stamped: int | None = None
        self._charts_seen: CommitId | None = None
        self._charts_at = -math.inf
        self._is_blind = False
        self._recent: dict[UUID, float] = {}
        self._own: dict[UUID, None] = {}
        self._common: dict[UUID, None] = {}

    def __len__(self) -> int:
        return len(self._seats)

    @contextmanager
    def seat(self, cluster: UUID) -> Iterator[Seat | None]:
        """A seat for as long as the context lasts; None: there is no room, or the gateway ends."""
        earlier = self._seats.get(cluster)
        if self._closing.is_set() or (earlier is None and len(self._seats) >= self._room):
            yield None
            return
        if earlier is not None:
            earlier.end()
        seat = self._seats[cluster] = Seat()
        if cluster in self._recent:
            seat.wake()
        self._somebody.set()
        try:
            yield seat
        finally:
            if self._seats.get(cluster) is seat:
                del self._seats[cluster]

    async def follow_forever(self) -> None:
        """Wakes whom something has happened to."""
        while True:
            if not self._seats:
                self._position = None
                self._somebody.clear()
                await self._somebody.wait()
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """One look, and the answers that follow from it."""
        if self._closing.is_set():
            for seat in self._seats.values():
                seat.end()
            return
        try:
            await self._look_at_events()
            await self._look_at_charts()
            self._is_blind = False
        except EdgewrightError as error:  # they wait on: nothing can be wanted of them now either
            if not self._is_blind:
                _log.warning("cannot look for news of held heartbeats", reason=error.detail)
            self._is_blind = True
        self._wake_some()

    async def _look_at_events(self) -> None:
        now = self._clock()
        self._recent = {each: at for each, at in self._recent.items() if now - at < RECENT_SECONDS}
        if self._position is None:  # nobody has waited for a while: what has happened since is not worth reading
            self._position = await self._audit.last_position()
            self._own.update(dict.fromkeys(self._seats))
            return
        stamp = self._stamp() if self._stamp is not None else None
        if stamp is not None and stamp == self._stamped:
            return
        before = self._position
        self._position, touched = await self._audit.touched(after=before)
        self._stamped = stamp if self._position == before else None  # else there may be more to read
        self._recent.update(dict.fromkeys(touched, now))
        self._own.update(dict.fromkeys(touched & self._seats.keys()))

    async def _look_at_charts(self) -> None:
        if self._clock() - self._charts_at < CHARTS_SECONDS:
            return
        self._charts_at = self._clock()
        head = await self._charts()
        if head is not None and self._charts_seen not in (None, head):
            self._common.update(dict.fromkeys(self._seats))
        self._charts_seen = head or self._charts_seen

    def _wake_some(self) -> None:
        left = self._wake(self._own, AT_ONCE)
        self._wake(self._common, left)

    def _wake(self, waiting: dict[UUID, None], most: int) -> int:
        """Wakes those who have waited longest; returns how many more may be woken."""
        for cluster in list(waiting):
            if most <= 0:
                break
            del waiting[cluster]
            seat = self._seats.get(cluster)
            if seat is not None:
                seat.wake()
                most -= 1
        return most
