"""How many requests with the same credentials are looked up at once."""

import asyncio

import pytest

from api.arrivals import AT_ONCE, WAITING, Arrivals
from edgewright.errors import TooMany


async def test_few_of_one_caller_are_looked_up_at_once_and_nobody_else_waits_for_them() -> None:
    arrivals, answered, inside = Arrivals(), asyncio.Event(), 0

    async def look_up(secret: str) -> None:
        nonlocal inside
        async with arrivals.turn(secret):
            inside += 1
            await answered.wait()

    crowd = [asyncio.create_task(look_up("crowd")) for _ in range(AT_ONCE + WAITING)]
    await asyncio.sleep(0)
    assert inside == AT_ONCE
    other = asyncio.create_task(look_up("other"))
    await asyncio.sleep(0)
    assert inside == AT_ONCE + 1
    with pytest.raises(TooMany) as refused:
        await look_up("crowd")
    assert refused.value.code == "too_many_requests"
    answered.set()
    await asyncio.gather(*crowd, other)
    assert inside == AT_ONCE + WAITING + 1
    assert not len(arrivals), "whoever has nothing under way is forgotten"


async def test_whoever_goes_away_while_waiting_leaves_no_trace() -> None:
    arrivals = Arrivals()

    async def look_up() -> None:
        async with arrivals.turn("crowd"):
            await asyncio.Event().wait()

    crowd = [asyncio.create_task(look_up()) for _ in range(AT_ONCE + 3)]
    await asyncio.sleep(0)
    for each in crowd:
        each.cancel()
    await asyncio.gather(*crowd, return_exceptions=True)
    assert not len(arrivals)
