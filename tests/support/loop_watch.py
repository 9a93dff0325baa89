"""Measures how long anything holds an event loop, by processor time: other programs of the machine do not count."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

TICK_SECONDS = 0.002


@dataclass
class LoopWatch:
    """What was seen. A hold is the time between two ticks, in milliseconds that this process has computed.

    A thread that keeps Python's lock holds the loop as well, and counts.
    """

    holds: list[float] = field(default_factory=list)

    @property
    def longest(self) -> float:
        """Milliseconds."""
        return max(self.holds, default=0.0)


@asynccontextmanager
async def watched_loop() -> AsyncIterator[LoopWatch]:
    """Watches the running loop until the block ends."""
    watch = LoopWatch()
    ticking = asyncio.create_task(_tick(watch))
    try:
        await asyncio.sleep(10 * TICK_SECONDS)
        yield watch
        await asyncio.sleep(TICK_SECONDS)
    finally:
        ticking.cancel()


async def _tick(watch: LoopWatch) -> None:
    while True:
        before = time.process_time()
        await asyncio.sleep(TICK_SECONDS)
        watch.holds.append((time.process_time() - before) * 1000)
