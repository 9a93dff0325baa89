"""How the agent and the detacher run: on the settings of their environment, until SIGTERM or SIGINT.

Two files tell the probes of a pod how its program is: one is touched as long as the program turns, the other is made
once the centre has answered the agent.
"""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import structlog

from edgewright import __version__
from edgewright.agent.settings import AgentSettings, read_settings
from edgewright.agent.transitions import Transitions
from edgewright.core_dumps import forbid_core_dumps
from edgewright.errors import EdgewrightError
from edgewright.logs import configure_logs

ALIVE = Path("/run/edgewright/alive")
"""In a folder that only the pod has: elsewhere nobody looks, and nothing is written."""
ANSWERED = ALIVE.with_name("answered")
"""Beside it."""
TOUCH_SECONDS = 30.0

Run = Callable[[AgentSettings], Awaitable[None]]


async def until_told(run: Run, settings: AgentSettings) -> None:
    """Runs until SIGTERM or SIGINT."""
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None  # noqa: S101 - for the type checker: a coroutine that runs has a task
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    log = structlog.get_logger("edgewright.agent")
    log.info("started", version=__version__)
    alive = asyncio.create_task(keep_alive())
    try:
        await run(settings)
    except asyncio.CancelledError:
        log.info("ended")
    finally:
        alive.cancel()


def main_of(run: Run) -> int:
    """The exit code: 0 after a clean end, 1 where only a new start or a person can go on."""
    gc.freeze()
    gc.enable()  # it rested while all of this was loaded
    forbid_core_dumps()
    try:
        settings = read_settings(os.environ)
    except EdgewrightError as error:
        sys.stderr.write(f"{error.detail}\n")
        return 1
    configure_logs(settings.log_level)
    code = 0
    try:
        asyncio.run(until_told(run, settings))
    except* EdgewrightError as group:
        for trouble in group.exceptions:
            structlog.get_logger("edgewright.agent").error("cannot go on", detail=str(trouble))
        code = 1
    return code


async def keep_alive(file: Path = ALIVE, seconds: float = TOUCH_SECONDS) -> None:
    """Touches the file again and again until it is cancelled; returns at once if there is no such folder.

    It says nothing of the centre or of Kubernetes: an agent that waits for either, for weeks if it must, is alive.
    """
    matter = Transitions("liveness")
    while file.parent.is_dir():
        try:
            touch(file)
            matter.well("told")
        except OSError as trouble:
            matter.trouble("unwritable", detail=f"{file} cannot be written ({type(trouble).__name__}).")
        await asyncio.sleep(seconds)


class ReadinessFile:
    """Tells the readiness probe that the centre has answered this process.

    It goes on telling so: a centre that is away for a while is no reason to replace an agent.
    """

    def __init__(self, file: Path = ANSWERED) -> None:
        self._file = file
        self._matter = Transitions("readiness")
        self._is_told = not file.parent.is_dir()  # elsewhere nobody looks
        with suppress(OSError):
            file.unlink(missing_ok=True)  # of the process before, in the same pod

    def tell(self) -> None:
        """The centre has answered."""
        if self._is_told:
            return
        try:
            touch(self._file)
        except OSError as trouble:
            detail = f"{self._file} cannot be written ({type(trouble).__name__})."
            self._matter.trouble("unwritable", detail=detail)
        else:
            self._is_told = True
            self._matter.well("told")


def touch(file: Path) -> None:
    """Makes it as old as now."""
    file.touch(mode=0o600)
