"""How the agent and the detacher run: on the settings of their environment, until SIGTERM or SIGINT."""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Awaitable, Callable

import structlog

from edgewright import __version__
from edgewright.agent.alive import keep_alive
from edgewright.agent.settings import AgentSettings, read_settings
from edgewright.core_dumps import forbid_core_dumps
from edgewright.errors import EdgewrightError
from edgewright.logs import configure_logs

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
