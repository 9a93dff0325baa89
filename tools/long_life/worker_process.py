"""The worker in a process of its own, so that its memory is its own; another version of it after an upgrade."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import psutil
from centre import EXTERNAL_URL, open_centre

import activities.upkeep
import worker
from activities.composition import build_activities
from edgewright.adapters.git.bare import BareGitServer
from edgewright.domain.rendering import repository
from tools.long_life.shared_clock import SharedClock
from workflows import policies

START_SECONDS = 90.0


@dataclass(frozen=True)
class WorkerOrder:
    """What the process is told. ``renderer``: its version of the renderer; the others as in ``LongLifePlan``."""

    folder: str
    temporal: str
    renderer: int
    history_limit: int | None
    upkeep_slots: int
    loose_limit: int


class WorkerProcess:
    """One worker at a time."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, order: WorkerOrder) -> None:
        """Returns when it polls."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tools.long_life.worker_process",
                json.dumps(asdict(order)),
                stdout=subprocess.PIPE,
                stderr=log,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            )
        assert self._process.stdout
        said = await asyncio.wait_for(self._process.stdout.readline(), START_SECONDS)
        assert said == b"polling\n", f"the worker did not start: {self._log.read_text()[-3000:]}"

    async def stop(self) -> None:
        """Asks it to end, as a service manager does."""
        if self._process is not None:
            self._process.terminate()
            code, self._process = await asyncio.wait_for(self._process.wait(), 60), None
            assert code == 0, f"the worker ended with {code}: {self._log.read_text()[-3000:]}"

    async def end(self) -> None:
        """Ends it whatever happened before."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    @property
    def megabytes(self) -> float:
        """Memory that it alone holds."""
        assert self._process
        held: int = psutil.Process(self._process.pid).memory_full_info().uss
        return held / 1e6


# --- the process's side ------------------------------------------------------------------------------------


def become(order: WorkerOrder) -> None:
    """Shortens what is to be shorter here, and takes the version of the renderer."""
    repository.RENDERER_VERSION = order.renderer
    activities.upkeep.UPKEEP_SLOTS = order.upkeep_slots
    if order.history_limit is not None:
        policies.HISTORY_LIMIT = order.history_limit


async def work(order: WorkerOrder) -> None:
    """Polls until it is asked to end."""
    folder, stop = Path(order.folder), asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with open_centre(folder, order.temporal, clock=SharedClock(folder / "clock")) as centre:
        git = BareGitServer(folder / "repositories", loose_limit=order.loose_limit)
        ports = replace(centre.ports, git=git)
        functions = build_activities(
            ports, centre.fleet, centre.sender, organisation="ACME", external_url=EXTERNAL_URL
        )
        workers = worker.build_workers(centre.client, functions, slots=16)
        async with AsyncExitStack() as polling:
            for one in workers:
                await polling.enter_async_context(one)
            os.write(1, b"polling\n")
            os.dup2(2, 1)
            await stop.wait()


if __name__ == "__main__":
    told = WorkerOrder(**json.loads(sys.argv[1]))
    become(told)
    asyncio.run(work(told))
