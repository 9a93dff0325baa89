"""Whose credentials are being looked up.

Each lookup asks the database, which answers few at a time. Without a bound for each caller, hundreds of requests that
one token sends at once would be looked up before the next heartbeat of an edge.
"""

import asyncio
import hashlib
from dataclasses import dataclass, field
from types import TracebackType

from edgewright.errors import TooMany

AT_ONCE = 4
"""Requests with the same credentials that are looked up at a time."""
WAITING = 256
"""Those that wait for that; waiting costs next to nothing."""


@dataclass
class _ArrivalLane:
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    inside: int = 0


class Arrivals:
    """Lets few lookups of the same credentials run at once in one process.

    A caller is whoever presents the same secret, right or wrong: who knows only somebody else's name takes none of
    their turns.
    """

    def __init__(self) -> None:
        self._lanes: dict[bytes, _ArrivalLane] = {}

    def __len__(self) -> int:
        """Callers that are remembered: those with a request under way here."""
        return len(self._lanes)

    def turn(self, secret: str) -> "ArrivalTurn":
        """A context that begins once few others with these credentials are being looked up, and is the lookup.

        Raises:
            TooMany: when it is entered; code ``too_many_requests``: too many of them wait already.
        """
        return ArrivalTurn(self._lanes, hashlib.sha256(secret.encode()).digest())


class ArrivalTurn:
    """One lookup. Not a generator, as each request has one."""

    __slots__ = ("_caller", "_lane", "_lanes")
    _lane: _ArrivalLane

    def __init__(self, lanes: dict[bytes, _ArrivalLane], caller: bytes) -> None:
        self._lanes = lanes
        self._caller = caller

    async def __aenter__(self) -> None:
        lane = self._lane = self._lanes.setdefault(self._caller, _ArrivalLane())
        if lane.inside >= AT_ONCE + WAITING:
            raise TooMany(
                "Too many requests with these credentials have come at once.",
                code="too_many_requests",
                retry_after=1.0,
                hint=f"Send at most {WAITING} at a time.",
            )
        lane.inside += 1
        try:
            await lane.turns.acquire()
        except BaseException:
            self._leave()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lane.turns.release()
        self._leave()

    def _leave(self) -> None:
        self._lane.inside -= 1
        if not self._lane.inside:
            del self._lanes[self._caller]
