"""The garbage collector rests while a program loads its libraries, and works in every program that runs."""

import argparse
import gc
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

import worker
from api import __main__ as gateway
from edgewright.agent import lifetime
from edgewright.cli import web_ui


class Begun(Exception):
    """The program goes on to its work."""


def goes_on(*_given: object, **_named: object) -> None:
    raise Begun


@pytest.fixture
def resting() -> Iterator[None]:
    """As while modules are loaded."""
    gc.disable()
    yield
    gc.enable()
    gc.unfreeze()


async def run_worker() -> None:
    await worker.main()


async def run_gateway() -> None:
    gateway.main()


async def run_agent() -> None:
    lifetime.main_of(goes_on)  # type: ignore[arg-type] # it ends before it runs


async def run_guard() -> None:
    web_ui.main()


@pytest.mark.usefixtures("resting")
@pytest.mark.parametrize(
    ("module", "first", "run"),
    [
        (worker, "forbid_core_dumps", run_worker),
        (gateway, "forbid_core_dumps", run_gateway),
        (lifetime, "forbid_core_dumps", run_agent),
        (argparse, "ArgumentParser", run_guard),
    ],
    ids=["worker", "gateway", "agent", "guard"],
)
async def test_a_program_that_runs_collects(
    module: object, first: str, run: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, first, goes_on)
    with pytest.raises(Begun):
        await run()  # type: ignore[misc] # each of them is a coroutine
    assert gc.isenabled()


@pytest.mark.parametrize("module", ["worker", "api.__main__", "edgewright.agent.__main__", "edgewright.cli.web_ui"])
def test_whoever_imports_a_program_keeps_the_collector(module: str) -> None:
    code = f"import gc, {module}; print(gc.isenabled())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "True\n"


def test_a_command_collects_and_leaves_out_what_was_loaded() -> None:
    code = (
        "import gc, sys, edgewright.cli.entry as entry, edgewright.cli.main as main\n"
        "main.main = lambda: print(gc.isenabled(), gc.get_freeze_count() > 10_000)\n"
        "entry.main()"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "True True\n"
