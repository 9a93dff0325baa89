"""Time as the agent needs it, in one place, so that a test can let a month pass."""

import asyncio
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """``monotonic`` counts seconds from anywhere; ``now`` is the edge's wall clock, aware."""

    def monotonic(self) -> float: ...

    def now(self) -> datetime: ...

    async def sleep(self, seconds: float, *, until: asyncio.Event | None = None) -> None:
        """Returns after so many seconds, or as soon as the event is set."""
        ...


class RealClock:
    """The machine's."""

    def monotonic(self) -> float:
        return time.monotonic()

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, seconds: float, *, until: asyncio.Event | None = None) -> None:
        if until is None:
            await asyncio.sleep(seconds)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await until.wait()
