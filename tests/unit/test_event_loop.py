"""The watch over the event loop sees whatever holds it."""

import asyncio
import time

from edgewright.event_loop import TICK_SECONDS, watch_lag


async def test_whatever_holds_the_loop_is_seen_as_lag() -> None:
    seen: list[float] = []
    watching = asyncio.create_task(watch_lag(seen.append))
    while not seen:
        await asyncio.sleep(TICK_SECONDS)
    held = 10 * TICK_SECONDS
    time.sleep(held)
    before = len(seen)
    while len(seen) == before:
        await asyncio.sleep(0)
    watching.cancel()
    assert held - TICK_SECONDS <= max(seen)
    assert min(seen) >= 0
