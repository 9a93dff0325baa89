"""Whose credentials are being looked up.

Each lookup asks the database, which answers few at a time. Without a bound for each caller, hundreds of requests that
one token sends at once would be looked up before the next heartbeat of an edge.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from edgewright.errors import TooMany

AT_ONCE = 4
"""Requests with the same credentials that are looked up at a time."""
WAITING = 256
"""Those that wait for that; waiting costs next to nothing."""


@dataclass
class _Lane:
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    inside: int = 0


class Arrivals:
    """Of one process.

    A caller is whoever presents the same secret, right or wrong: who knows only somebody else's name takes none of
    their turns.
    """

    def __init__(self) -> None:
        self._lanes: dict[bytes, _Lane] = {}

    def __len__(self) -> int:
        """Callers that are remembered: those with a request under way here."""
        return len(self._lanes)

    @asynccontextmanager
    async def turn(self, secret: str) -> AsyncIterator[None]:
        """Waits until few others with these credentials are being looked up; the context is the lookup.

        Raises:
            TooMany: code ``too_many_requests``: too many of them wait already.
        """
        caller = hashlib.sha256(secret.encode()).digest()
        lane = self._lanes.setdefault(caller, _Lane())
        if lane.inside >= AT_ONCE + WAITING:
            raise TooMany(
                "Too many requests with these credentials have come at once.",
                code="too_many_requests",
                retry_after=1.0,
                hint=f"Send at most {WAITING} at a time.",
            )
        lane.inside += 1
        try:
            async with lane.turns:
                yield
        finally:
            lane.inside -= 1
            if not lane.inside:
                del self._lanes[caller]
