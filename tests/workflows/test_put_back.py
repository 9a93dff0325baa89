"""Temporal's database is put back to an earlier copy: its workflows have forgotten what the database knows."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from centre import WorkflowCentre, eventually, open_centre, working
from cluster_states import at_phase, at_step, is_told
from free_ports import free_port
from temporal_server import temporal_server

from activities import upkeep
from edgewright.domain.cluster import Phase, StepName
from edgewright.domain.events import NewEvent
from edgewright.domain.projection import Projection
from edgewright.errors import Waiting
from edgewright.messages import names
from edgewright.messages.sweep import SweepResult


@dataclass
class Copied:
    """Temporal's file, on the port that stays the same, and one copy of it."""

    folder: Path
    port: int

    @property
    def file(self) -> Path:
        return self.folder / "temporal.db"

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def copy(self) -> None:
        with closing(sqlite3.connect(self.file)) as source, closing(sqlite3.connect(self.folder / "copy.db")) as copy:
            source.backup(copy)

    def put_back(self) -> None:
        for ending in ("", "-wal", "-shm"):
            self.file.with_name(f"temporal.db{ending}").unlink(missing_ok=True)
        (self.folder / "copy.db").rename(self.file)

    def server(self) -> Any:
        return temporal_server(self.folder / "temporal.log", db=self.file, port=self.port)


@pytest.fixture
def copied(tmp_path: Path) -> Copied:
    return Copied(tmp_path, free_port())


Lost = Callable[[WorkflowCentre, UUID], Awaitable[None]]


@asynccontextmanager
async def put_back(copied: Copied, lost: Lost, *, bootstrapped: bool) -> AsyncIterator[tuple[WorkflowCentre, UUID]]:
    """A cluster at rest, after everything that ``lost`` does has been forgotten; a worker runs."""
    with copied.server():
        async with open_centre(copied.folder / "centre", copied.address) as centre, working(centre):
            cluster = await centre.create("put-back")
            if bootstrapped:
                await centre.bootstrap(cluster)
                await centre.until(cluster, at_phase(Phase.ACTIVE))
            await eventually(lambda: is_told(centre, cluster))
            copied.copy()
            await lost(centre, cluster)
    copied.put_back()
    with copied.server():
        async with open_centre(copied.folder / "centre", copied.address) as centre, working(centre):
            yield centre, cluster


async def told(centre: WorkflowCentre, cluster: UUID, kind: str, fact: str) -> Counter[object]:
    return Counter(event.detail[fact] for event in await centre.audit.timeline(cluster) if event.kind == kind)


async def change(centre: WorkflowCentre, cluster: UUID) -> None:
    await centre.write(cluster, "put-back", values={"lost": True})
    await centre.until(cluster, lambda row: bool(row.projection and row.projection.change_done == row.change))
    await eventually(lambda: is_told(centre, cluster))


async def test_what_happens_after_it_is_told_although_the_forgotten_has_been_told(copied: Copied) -> None:
    async with put_back(copied, change, bootstrapped=False) as (centre, cluster):
        await centre.wishes.request_removal(cluster, actor="token:test")
        await centre.fleet.nudge(cluster)
        await centre.until(cluster, at_phase(Phase.REMOVED))
        await eventually(lambda: is_told(centre, cluster))
        steps = await told(centre, cluster, "step.done", "step")
        assert (steps["suspend_credentials"], steps["withdraw_status"]) == (1, 1)
        assert [*await told(centre, cluster, "phase.changed", "phase")] == ["AwaitingBootstrap", "Removed"]


async def begin_deletion(centre: WorkflowCentre, cluster: UUID) -> None:
    await centre.wishes.request_deletion(cluster, actor="token:test", deadline=timedelta(seconds=3))
    await centre.fleet.nudge(cluster)
    await centre.until(cluster, at_step(StepName.AWAIT_EMPTY))
    await eventually(lambda: is_told(centre, cluster))


async def test_a_deletion_that_was_forgotten_half_way_is_finished(
    copied: Copied, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "FIRST_REMINDER", 0.5)

    async def is_deleted() -> bool:
        await centre.client.execute_workflow(
            names.SWEEP_TYPE, id=f"sweep-{uuid4()}", task_queue=names.CLUSTERS_QUEUE, result_type=SweepResult
        )
        return at_phase(Phase.DELETED)(await centre.row(cluster))

    async with put_back(copied, begin_deletion, bootstrapped=True) as (centre, cluster):
        await eventually(is_deleted)


class Late:
    """Clusters of which one call does its work when somebody says so."""

    def __init__(self, real: Any, call: str) -> None:
        self._real, self._call = real, call
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return self._wait if name == self._call else getattr(self._real, name)

    async def _wait(self, *arguments: Any, **options: Any) -> None:
        self.reached.set()
        await self.go_on.wait()
        await getattr(self._real, self._call)(*arguments, **options)


@pytest.mark.parametrize("read", [False, True], ids=["before its first reading", "after it"])
async def test_a_phase_is_told_once_although_the_workflow_forgot_it_in_the_middle_of_a_step(
    copied: Copied, read: bool
) -> None:
    """One that has not read anything when it is put back reads that all is done; another one does it again."""
    cluster = uuid4()

    async def has_read(centre: WorkflowCentre) -> bool:
        return (await centre.fleet.readiness(cluster)).waiting_for.startswith("step ")

    with copied.server():
        async with open_centre(copied.folder / "centre", copied.address) as centre:
            late = Late(centre.steps, "publish_setup_status")
            async with working(centre, steps=late):
                await centre.write(cluster, "put-back")
                await late.reached.wait()
                if read:
                    await centre.fleet.nudge(cluster)
                    await eventually(lambda: has_read(centre))
                copied.copy()
                late.go_on.set()
                await centre.until(cluster, at_phase(Phase.AWAITING_BOOTSTRAP))
                await eventually(lambda: is_told(centre, cluster))
    copied.put_back()

    async def done_again() -> bool:
        return (await told(centre, cluster, "step.done", "step"))["publish_status"] == (2 if read else 1)

    with copied.server():
        async with open_centre(copied.folder / "centre", copied.address) as centre, working(centre):
            await eventually(done_again)
            await eventually(lambda: is_told(centre, cluster))
            assert await done_again()
            assert await told(centre, cluster, "phase.changed", "phase") == {"AwaitingBootstrap": 1}
            assert at_phase(Phase.AWAITING_BOOTSTRAP)(await centre.row(cluster))


async def test_a_pause_that_the_workflow_meets_again_undoes_no_resume(copied: Copied) -> None:
    """The copy holds a pause under way: its attempt is made once more, after the resume that was answered."""

    async def at(centre: WorkflowCentre) -> int:
        return (await centre.row(cluster)).change

    with copied.server():
        async with open_centre(copied.folder / "centre", copied.address) as centre:
            late = Late(centre.wishes, "set_paused")
            async with working(centre, wishes=late):
                cluster = await centre.create("put-back")
                fleet = centre.fleet
                wish = fleet.pause(cluster, reason="shift change", actor="token:test", seen=await at(centre))
                pausing = asyncio.create_task(wish)
                await late.reached.wait()
                copied.copy()
                late.go_on.set()
                await pausing
                await fleet.resume(cluster, actor="token:test", seen=await at(centre))
                await eventually(lambda: is_told(centre, cluster))
    copied.put_back()

    with copied.server():
        async with open_centre(copied.folder / "centre", copied.address) as centre:
            again = Late(centre.wishes, "set_paused")
            again.go_on.set()
            async with working(centre, wishes=again):
                await again.reached.wait()
                await eventually(lambda: is_told(centre, cluster))
            assert not (await centre.row(cluster)).paused


class SilentAtTheEnd:
    """Clusters whose end cannot be published."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def project(self, cluster: UUID, projection: Projection, events: Sequence[NewEvent]) -> None:
        if projection.phase is Phase.DELETED:
            raise Waiting("The database is away.", code="database_unavailable")
        await self._real.project(cluster, projection, events)


async def test_the_end_of_a_deletion_is_told_although_its_workflow_is_forgotten_altogether(
    idle_centre: WorkflowCentre, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy that was put back is older than the cluster."""
    monkeypatch.setattr(upkeep, "FIRST_REMINDER", 0.5)

    async def is_told_of() -> bool:
        await idle_centre.client.execute_workflow(
            names.SWEEP_TYPE, id=f"sweep-{uuid4()}", task_queue=names.CLUSTERS_QUEUE, result_type=SweepResult
        )
        return [*await told(idle_centre, cluster, "phase.changed", "phase")][-1] == "Deleted"

    async with working(idle_centre, steps=SilentAtTheEnd(idle_centre.steps)):
        cluster = await idle_centre.create("forgotten")
        await idle_centre.bootstrap(cluster)
        await idle_centre.wishes.request_deletion(cluster, actor="token:test", deadline=timedelta(seconds=1))
        await idle_centre.fleet.nudge(cluster)
        await idle_centre.until(cluster, lambda row: row.closed)
        await idle_centre.handle(cluster).terminate()
    async with working(idle_centre):
        await eventually(is_told_of)
        assert (await told(idle_centre, cluster, "phase.changed", "phase"))["Deleted"] == 1
        assert cluster not in await idle_centre.directory.underway()
