"""The watch over the loop names the longest stretch of any task, and no load of the machine."""

import asyncio
import gc
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from edgewright.event_loop import new_event_loop
from edgewright.held_loop import HeldLoop

HELD = 0.2
"""Seconds; more than anything else that runs here."""


def on_a_new_loop(main: Callable[[], Any], loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())


@asynccontextmanager
async def watched() -> AsyncIterator[list[float]]:
    """What the watch tells; at the end it has told of all that was in the block."""
    seen: list[float] = []
    watching = asyncio.create_task(HeldLoop().watch(seen.append))
    yield seen
    told = len(seen)
    while len(seen) < told + 2:
        await asyncio.sleep(0.01)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


@contextmanager
def slow_collections() -> Iterator[None]:
    """A garbage collector that has much to look through: it computes for as long as ``computes``."""

    def collects(phase: str, _: dict[str, int]) -> None:
        began = time.thread_time()
        while phase == "stop" and time.thread_time() - began < HELD:
            pass

    gc.callbacks.insert(0, collects)
    try:
        yield
    finally:
        gc.callbacks.remove(collects)


async def computes() -> None:
    began = time.thread_time()
    while time.thread_time() - began < HELD:
        pass


@pytest.mark.parametrize("loop", [new_event_loop, asyncio.new_event_loop])
def test_a_task_that_computes_is_seen(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def main() -> None:
        async with watched() as seen:
            await asyncio.create_task(computes())
        assert max(seen) >= HELD
        assert sum(each >= HELD for each in seen) == 1, "told once"

    on_a_new_loop(main, loop)


@pytest.mark.parametrize("loop", [new_event_loop, asyncio.new_event_loop])
def test_a_task_that_computes_after_a_cancellation_is_seen(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def ends_slowly() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await computes()

    async def main() -> None:
        async with watched() as seen:
            task = asyncio.create_task(ends_slowly())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert max(seen) >= HELD

    on_a_new_loop(main, loop)


@pytest.mark.parametrize("loop", [new_event_loop, asyncio.new_event_loop])
def test_a_machine_under_load_makes_nobody_guilty(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def kept_waiting() -> None:
        time.sleep(HELD)

    async def main() -> None:
        async with watched() as seen:
            await asyncio.create_task(kept_waiting())
        assert max(seen) < HELD

    on_a_new_loop(main, loop)


@pytest.mark.parametrize("loop", [new_event_loop, asyncio.new_event_loop])
def test_tasks_are_what_they_are_without_the_watch(loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def returns() -> int:
        await asyncio.sleep(0)
        return 1

    async def raises() -> None:
        await asyncio.sleep(0)
        raise LookupError

    async def main() -> None:
        async with watched():
            assert await asyncio.create_task(returns()) == 1
            assert await asyncio.wait_for(returns(), 60) == 1
            assert list(await asyncio.gather(returns(), returns())) == [1, 1]
            with pytest.raises(LookupError):
                await asyncio.create_task(raises())
            named = asyncio.create_task(returns(), name="named")
            assert named.get_name() == "named"
            assert "returns" in repr(named)
            assert named.get_stack()
            await named

    on_a_new_loop(main, loop)


async def test_what_the_garbage_collector_takes_is_no_tasks_doing() -> None:
    async def collects() -> None:
        gc.collect()

    async def computes_beside_a_collection() -> None:
        other = threading.Thread(target=gc.collect)
        other.start()
        await computes()
        other.join()

    with slow_collections():
        async with watched() as seen:
            await asyncio.create_task(collects())
        assert max(seen) < HELD / 2
        async with watched() as seen:
            await asyncio.create_task(computes_beside_a_collection())
        assert max(seen) >= HELD
    assert not [each for each in gc.callbacks if getattr(each, "__self__", None).__class__ is HeldLoop]
