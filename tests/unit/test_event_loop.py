"""The watch over the event loop sees whatever holds it, and the garbage collector does not."""

import asyncio
import gc
import os
import subprocess
import sys
import time
import weakref
from pathlib import Path

import pytest

from edgewright import event_loop
from edgewright.event_loop import (
    LEAST_PAUSE,
    LONGEST_PAUSE,
    SHARE,
    SWITCH_SECONDS,
    TICK_SECONDS,
    collecting_seldom,
    watch_lag,
)

COLLECTS = """
import gc, importlib, sys
from edgewright.event_loop import spare_what_is_loaded

importlib.import_module(sys.argv[1])
gc.collect()
before = len(gc.get_objects())
spare_what_is_loaded()
gc.collect()
print(len(gc.get_objects()) / before)
"""
"""What a collection looks through after the call, as a part of what it looked through before."""


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


@pytest.mark.parametrize("program", ["worker", "api.app"])
def test_the_garbage_collector_does_not_look_through_the_program_again(program: str) -> None:
    command = [sys.executable, "-c", COLLECTS, program]
    told = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    assert float(told.stdout) < 0.1


@pytest.mark.parametrize("program", ["worker", "api.__main__"])
def test_both_programs_have_threads_give_way_to_the_loop(program: str, tmp_path: Path) -> None:
    """Each program says so before anything else can end it; here its settings do."""
    code = f"""
import runpy
from contextlib import suppress
from unittest import mock
with mock.patch("sys.setswitchinterval") as told, suppress(BaseException):
    runpy.run_module({program!r}, run_name="__main__", alter_sys=True)
print(told.call_args_list)
"""
    told = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "EDGEWRIGHT_DATABASE_URL": "nonsense://", "EDGEWRIGHT_HOME": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert f"call({SWITCH_SECONDS})" in told.stdout


async def test_garbage_is_looked_for_by_the_clock_and_not_by_the_number_of_objects() -> None:
    class Node:
        other: "Node"

    before = gc.get_threshold()
    full: list[str] = []

    def watch(phase: str, about: dict[str, int]) -> None:
        if about["generation"] == 2:
            full.append(phase)

    async with collecting_seldom(least=0.5, longest=0.5):
        gc.callbacks.append(watch)
        try:
            kept = [[number] for number in range(300_000)]
            assert full == [], "so many objects come that Python itself would look at all of them"
            first, second = Node(), Node()
            first.other, second.other = second, first
            gone = weakref.ref(first)
            del first, second
            async with asyncio.timeout(20):
                while gone() is not None:
                    await asyncio.sleep(0.01)
        finally:
            gc.callbacks.remove(watch)
    assert len(kept) == 300_000
    assert gc.get_threshold() == before


async def test_the_longer_a_look_takes_the_longer_is_the_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    looks, now = [0.001, 0.3, 60.0], [0.0]
    pauses: list[float] = []

    def collect() -> None:
        now[0] += looks.pop(0)

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if not looks:
            raise asyncio.CancelledError

    monkeypatch.setattr("edgewright.event_loop.gc.collect", collect)
    monkeypatch.setattr("edgewright.event_loop.time.perf_counter", lambda: now[0])
    monkeypatch.setattr("edgewright.event_loop.asyncio.sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await event_loop._look_for_garbage(LEAST_PAUSE, LONGEST_PAUSE)
    assert pauses == [LEAST_PAUSE, LEAST_PAUSE, pytest.approx(0.3 / SHARE), LONGEST_PAUSE]
