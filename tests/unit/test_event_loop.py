"""The watch over the event loop sees whatever holds it, and the garbage collector does not."""

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from edgewright.event_loop import SWITCH_SECONDS, TICK_SECONDS, watch_lag

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
