"""The real worker in a process of its own that SIGKILLs itself at a chosen point of a chosen activity.

Run as a program it is a zygote: it imports everything once and forks a fresh worker for each line that it reads,
so that a death costs no second start of the interpreter. A worker notices the death of its predecessor by the
heartbeats that stay away; here after 1 s instead of 4.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial, wraps
from pathlib import Path
from typing import Any, Literal

from centre import EXTERNAL_URL, open_centre
from temporalio import activity
from temporalio.worker import Worker

import activities.interceptors
import worker
from activities.composition import build_activities
from activities.step_chain import StepChainActivities
from workflows import policies

Point = Literal["before", "after", "recorded"]

HEARTBEAT_TIMEOUT = timedelta(seconds=1)
HEARTBEAT_INTERVAL = 0.25


@dataclass(frozen=True)
class Death:
    """Where a worker dies.

    Args:
        point: ``before`` the effect of the activity; ``after`` it, its result unreported; or once the result is
            ``recorded``, at the start of whatever comes next.
    """

    activity: str
    point: Point

    def __str__(self) -> str:
        return f"{self.point} {self.activity}"


class KillableWorker:
    """The test's side: one zygote, one worker at a time."""

    def __init__(self, zygote: "subprocess.Popen[bytes]", log: Path) -> None:
        self._zygote = zygote
        self._log = log
        self._pid: int | None = None

    async def start(self, folder: Path, temporal: str, death: Death | None = None) -> None:
        """Starts a worker for the centre in ``folder``, that dies at ``death`` or works until it is killed."""
        assert self._zygote.stdin and self._pid is None
        order = [str(folder), temporal, *((death.activity, death.point) if death else ())]
        self._zygote.stdin.write(json.dumps(order).encode() + b"\n")
        self._zygote.stdin.flush()
        self._pid = await self._number("the start of a worker")

    async def died(self, where: object) -> None:
        """Waits until the worker has died of SIGKILL."""
        status = await self._number(where)
        self._pid = None
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, f"{where}: status {status}"

    async def kill(self) -> None:
        """Kills the worker, if one lives."""
        if self._pid is not None:
            os.kill(self._pid, signal.SIGKILL)
            await self.died("the end")

    async def _number(self, what: object) -> int:
        assert self._zygote.stdout
        try:
            return int(await asyncio.wait_for(asyncio.to_thread(self._zygote.stdout.readline), timeout=60))
        except (TimeoutError, ValueError):
            said = self._log.read_text()[-3000:]
            self._zygote.kill()
            raise AssertionError(f"no word of {what} within 60 s; {said}") from None


@contextmanager
def killable_worker(log: Path) -> Iterator[KillableWorker]:
    """Starts the zygote; nothing of it outlives the block."""
    with (
        log.open("ab") as out,
        subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=out,
            start_new_session=True,
        ) as zygote,
    ):
        try:
            yield KillableWorker(zygote, log)
        finally:
            os.killpg(zygote.pid, signal.SIGKILL)


@asynccontextmanager
async def dying_in_turn(
    worker: KillableWorker, folder: Path, temporal: str, deaths: Sequence[Death]
) -> AsyncIterator[None]:
    """Workers that die one after another beside the block; when it is left, one works that lives."""

    async def die_in_turn() -> None:
        for death in deaths:
            await worker.start(folder, temporal, death)
            await worker.died(death)
        await worker.start(folder, temporal)

    await worker.kill()
    async with asyncio.TaskGroup() as group:
        group.create_task(die_in_turn())
        yield


# --- the process's side ------------------------------------------------------------------------------------


def mortal(functions: Sequence[Callable[..., Any]], death: Death | None) -> Sequence[Callable[..., Any]]:
    """The activities, one of which kills its process."""
    if death is None:
        return functions
    fate = _Fate(death)
    for owner in {getattr(function, "__self__", None) for function in functions}:
        if isinstance(owner, StepChainActivities):
            owner.steps = {step: _mortal(run, fate) for step, run in owner.steps.items()}
    return [_mortal(function, fate) for function in functions]


class _Fate:
    """What is known of the death that awaits; shared by all activities of a worker."""

    def __init__(self, death: Death) -> None:
        self._death = death
        self._recorded = False

    def meet(self, name: str, point: Point) -> None:
        if point == "before" and self._recorded:
            die()
        if self._death.activity != name:
            return
        if self._death.point == point:
            die()
        if self._death.point == "recorded" and point == "after":
            self._recorded = True


def _mortal(function: Callable[..., Any], fate: _Fate) -> Callable[..., Any]:
    name = getattr(function, "__temporal_activity_definition").name

    @activity.defn(name=name)
    @wraps(function, updated=())
    async def wrapper(*args: Any) -> Any:
        fate.meet(name, "before")
        result = await function(*args)
        fate.meet(name, "after")
        return result

    return wrapper


def die() -> None:
    """As a power cut does it."""
    os.kill(os.getpid(), signal.SIGKILL)


async def work(folder: Path, temporal: str, death: Death | None) -> None:
    """Polls until it is killed."""
    async with open_centre(folder, temporal) as centre:
        functions = build_activities(
            centre.ports, centre.fleet, centre.sender, organisation="ACME", external_url=EXTERNAL_URL
        )
        workers = worker.build_workers(centre.client, mortal(functions, death), slots=16)
        async with AsyncExitStack() as polling:
            for one in workers:
                await polling.enter_async_context(one)
            await asyncio.Event().wait()


def hurry() -> None:
    """Shorter heartbeats in every policy, and no workflow task that waits 10 s for a cache that is gone.

    With a build ID, so that no worker spends 2 s on a digest of all modules.
    """
    setattr(worker, "Worker", partial(Worker, build_id="killable"))  # noqa: B010 - a class is replaced
    for policy in vars(policies).values():
        if isinstance(policy, dict) and "heartbeat_timeout" in policy:
            policy["heartbeat_timeout"] = HEARTBEAT_TIMEOUT
    activities.interceptors.HEARTBEAT_INTERVAL = HEARTBEAT_INTERVAL
    worker.CACHED_WORKFLOWS = 0


def main() -> None:
    """Forks one worker for each line; tells its process ID, then how it ended."""
    hurry()
    for line in sys.stdin:
        folder, temporal, *death = json.loads(line)
        pid = os.fork()
        if pid == 0:
            os.dup2(2, 1)  # numbers alone go to the test; what a worker logs goes to the log
            asyncio.run(work(Path(folder), temporal, Death(*death) if death else None))
            os._exit(1)
        os.write(1, f"{pid}\n".encode())
        _, status = os.waitpid(pid, 0)
        os.write(1, f"{status}\n".encode())


if __name__ == "__main__":
    main()
