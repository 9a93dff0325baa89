"""The sweep: whatever a nudge has missed, it finds; whatever has expired, it ends."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from centre import WorkflowCentre, eventually, open_centre, working
from cluster_states import at_phase, has_commits, is_told, kinds
from sqlalchemy import select
from temporal_server import temporal_server
from temporalio.client import ScheduleOverlapPolicy

import activities.upkeep
from edgewright.adapters.database.tables import last_sweep
from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.temporal import sweep_schedule
from edgewright.adapters.temporal.setup import prepare, rebuild
from edgewright.adapters.temporal.sweep_schedule import restore_schedule
from edgewright.cli.service_checks import service_checks
from edgewright.domain.cluster import ClusterSettings, ConditionStatus, ConditionType, Phase, TokenState
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.errors import Waiting
from edgewright.messages import names
from edgewright.messages.sweep import SweepResult
from edgewright.ports.edge_reports import Heartbeat
from edgewright.ports.fleet import FleetUnavailable
from edgewright.settings import Settings


@dataclass
class LeadingClock:
    """The database's clock, some time ahead of everybody else's."""

    ahead: timedelta = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@pytest.fixture
def clock() -> LeadingClock:
    return LeadingClock()


@pytest.fixture
def temporal(tmp_path: Path) -> Iterator[str]:
    """A server of its own for each test: the sweep looks at all workflows."""
    with temporal_server(tmp_path / "temporal.log") as address:
        yield address


@pytest.fixture
async def idle_centre(temporal: str, tmp_path: Path, clock: LeadingClock) -> AsyncIterator[WorkflowCentre]:
    """A centre whose worker does not run, and whose clock can be moved."""
    async with open_centre(tmp_path / "centre", temporal, clock=clock) as centre:
        yield centre


async def sweep(centre: WorkflowCentre) -> SweepResult:
    """One round."""
    result = await centre.client.execute_workflow(
        names.SWEEP_TYPE, id=f"sweep-{uuid4()}", task_queue=names.CLUSTERS_QUEUE, result_type=SweepResult
    )
    assert isinstance(result, SweepResult)
    return result


async def change_without_a_nudge(centre: WorkflowCentre, cluster: UUID, name: str) -> None:
    body = {"name": name, "namespace": "edgewright", "values": {"replicas": 3}}
    await centre.wishes.write_configuration(cluster, body, actor="token:test")


# --- what nudges have missed -----------------------------------------------------------------------------------


async def test_a_change_that_nobody_was_told_of_is_found(centre: WorkflowCentre) -> None:
    cluster = await centre.create("untold")
    await eventually(lambda: is_told(centre, cluster))
    assert (await sweep(centre)).nudged == 0
    await change_without_a_nudge(centre, cluster, "untold")
    assert (await sweep(centre)).nudged == 1
    await eventually(lambda: has_commits(centre, cluster, 2))
    await eventually(lambda: is_told(centre, cluster))
    assert (await sweep(centre)).nudged == 0


async def test_a_cluster_without_a_workflow_gets_one(centre: WorkflowCentre) -> None:
    lost, other = await centre.create("lost"), await centre.create("other")
    await centre.handle(lost).terminate()
    run = (await centre.handle(other).describe()).run_id

    async def restarted() -> bool:
        return (await sweep(centre)).restarted == 1

    await eventually(restarted)
    assert await is_running(centre, lost)
    assert (await centre.handle(other).describe()).run_id == run
    await eventually(lambda: is_told(centre, lost))
    assert await has_commits(centre, lost, 1)


async def is_running(centre: WorkflowCentre, cluster: UUID) -> bool:
    status = (await centre.handle(cluster).describe()).status
    return status is not None and status.name == "RUNNING"


async def test_the_sweep_leaves_deleted_clusters_alone(centre: WorkflowCentre) -> None:
    cluster = await centre.create("deleted")
    await centre.handle(cluster).signal(names.SIGNAL_DELETE)
    await centre.until(cluster, at_phase(Phase.DELETED))
    for _ in range(2):
        found = await sweep(centre)
        assert (found.nudged, found.restarted) == (0, 0)


async def test_up_starts_the_workflows_that_are_missing(centre: WorkflowCentre) -> None:
    cluster = await centre.create("missing")
    await centre.handle(cluster).terminate()

    async def rebuilt() -> bool:
        return await rebuild(centre.fleet, centre.directory) == 1

    await eventually(rebuilt)
    assert await is_running(centre, cluster)


# --- what has expired ------------------------------------------------------------------------------------------


async def available(centre: WorkflowCentre, cluster: UUID, status: ConditionStatus) -> None:
    await centre.until(
        cluster, lambda row: bool(row.projection and row.projection.status_of(ConditionType.AVAILABLE) is status)
    )


async def details(centre: WorkflowCentre, cluster: UUID) -> str:
    """What Temporal's Web UI shows as the current details of the workflow."""
    metadata = await centre.handle(cluster).query("__temporal_workflow_metadata")
    return str(metadata["currentDetails"] if isinstance(metadata, dict) else metadata.current_details)


async def test_an_expired_lease_turns_available_to_unknown_and_back_once_each(
    centre: WorkflowCentre, clock: LeadingClock
) -> None:
    cluster = uuid4()
    body = {"name": "heard", "namespace": "edgewright"}
    await centre.wishes.write_configuration(
        cluster, body, actor="token:test", settings=ClusterSettings(lease_seconds=60), create_object=True
    )
    await centre.fleet.nudge(cluster)
    await centre.until(cluster, lambda row: bool(row.projection and row.projection.ready))
    await centre.bootstrap(cluster)
    for turn in (1, 2):
        await centre.ports.edge_reports.heartbeats([Heartbeat(cluster, 1)])
        await centre.fleet.nudge(cluster)
        await available(centre, cluster, ConditionStatus.TRUE)
        shown = await details(centre, cluster)
        assert "- Available: True (" in shown
        for _ in range(8):
            await centre.ports.edge_reports.keep_listening()
            clock.ahead += timedelta(seconds=10)
        await centre.ports.edge_reports.keep_listening()
        found = [(await sweep(centre)).leases for _ in range(3)]
        assert found == [1, 0, 0]
        await available(centre, cluster, ConditionStatus.UNKNOWN)
        shown = await details(centre, cluster)
        assert "- Available: Unknown (LeaseExpired): No heartbeat since " in shown
        assert "- Synced: " in shown
        told = [kind for kind in await kinds(centre, cluster) if kind.startswith("lease.")]
        assert told == ["lease.renewed", "lease.expired"] * turn
    row = await centre.row(cluster)
    assert row.projection and row.projection.phase is Phase.ACTIVE
    assert row.projection.lease_epoch == row.lease.epoch


async def test_a_registration_token_whose_time_has_passed_is_ended(
    centre: WorkflowCentre, clock: LeadingClock
) -> None:
    cluster = await centre.create("late")
    await centre.ports.edge_access.issue_token(
        cluster, token_id="t1", secret_sha256=b"x" * 32, expires_in=timedelta(hours=1), actor="token:test"
    )
    assert (await sweep(centre)).tokens == 0
    clock.ahead += timedelta(hours=2)
    assert (await sweep(centre)).tokens == 1
    token = await centre.ports.edge_access.token("t1")
    assert token is not None and token.state is TokenState.EXPIRED


# --- repositories ----------------------------------------------------------------------------------------------


@pytest.fixture
def every_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep keeps all repositories in shape, not a slice of them."""
    monkeypatch.setattr(activities.upkeep, "UPKEEP_SLOTS", 1)


@pytest.mark.usefixtures("every_repository")
async def test_a_lock_that_a_dead_process_left_is_removed_and_a_young_one_stays(idle_centre: WorkflowCentre) -> None:
    git = BareGitServer(idle_centre.git.root, stale_after=30)
    async with working(idle_centre, git=git):
        cluster = await idle_centre.create("locked")
        lock = lock_of(idle_centre, cluster)
        lock.write_text("")
        await sweep(idle_centre)
        assert lock.exists()
        os.utime(lock, times=(time.time() - 60,) * 2)
        assert (await sweep(idle_centre)).kept == 2  # that of the charts, too
        assert not lock.exists()
        await change_without_a_nudge(idle_centre, cluster, "locked")
        await idle_centre.fleet.nudge(cluster)
        await eventually(lambda: has_commits(idle_centre, cluster, 2))


def lock_of(centre: WorkflowCentre, cluster: UUID) -> Path:
    (heads,) = centre.git.root.rglob(f"*{cluster}*/refs/heads")
    return heads / "main.lock"


class OneBrokenRepository:
    """Git storage that cannot keep one repository."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.broken: UUID | None = None
        self.kept: set[UUID] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def upkeep(self, repository: UUID) -> None:
        if repository == self.broken:
            raise Waiting("The Git storage is away.", code="git_unavailable")
        self.kept.add(repository)


@pytest.mark.usefixtures("every_repository")
async def test_one_repository_that_cannot_be_kept_does_not_stop_the_others(idle_centre: WorkflowCentre) -> None:
    git = OneBrokenRepository(idle_centre.git)
    async with working(idle_centre, git=git):
        clusters = await asyncio.gather(*(idle_centre.create(f"kept-{number}") for number in range(3)))
        git.broken = min(clusters)
        assert (await sweep(idle_centre)).kept == 3
        assert git.kept == {*clusters, REPOSITORY_HELM_CHARTS} - {git.broken}


# --- the sweep itself ------------------------------------------------------------------------------------------


class BrokenReports:
    """Reports with a bug."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def expire_leases(self) -> None:
        raise KeyError("something nobody thought of")


@pytest.mark.usefixtures("every_repository")
async def test_a_part_that_fails_does_not_stop_the_others(idle_centre: WorkflowCentre) -> None:
    async with working(idle_centre, edge_reports=BrokenReports(idle_centre.ports.edge_reports)):
        cluster = await idle_centre.create("partly")
        await eventually(lambda: is_told(idle_centre, cluster))
        await change_without_a_nudge(idle_centre, cluster, "partly")
        found = await sweep(idle_centre)
        assert (found.leases, found.nudged, found.kept) == (0, 1, 2)
        await eventually(lambda: has_commits(idle_centre, cluster, 2))


async def test_preparing_twice_leaves_one_schedule_that_never_overlaps_itself(centre: WorkflowCentre) -> None:
    await prepare(centre.client, sweep_every=timedelta(seconds=30))
    handle = centre.client.get_schedule_handle(names.SWEEP_SCHEDULE)
    await handle.pause()
    await prepare(centre.client, sweep_every=timedelta(seconds=60))
    schedules = [schedule.id async for schedule in await centre.client.list_schedules()]
    described = (await handle.describe()).schedule
    assert set(schedules) <= {names.SWEEP_SCHEDULE}
    assert described.policy.overlap is ScheduleOverlapPolicy.SKIP
    assert [interval.every for interval in described.spec.intervals] == [timedelta(seconds=60)]
    assert described.state.paused


async def test_several_that_prepare_at_once_leave_one_schedule(centre: WorkflowCentre) -> None:
    await asyncio.gather(*(prepare(centre.client, sweep_every=timedelta(seconds=90)) for _ in range(4)))
    described = (await centre.client.get_schedule_handle(names.SWEEP_SCHEDULE).describe()).schedule
    assert [interval.every for interval in described.spec.intervals] == [timedelta(seconds=90)]
    assert not described.state.paused


async def test_after_a_kill_between_deleting_and_making_the_next_one_makes_it(centre: WorkflowCentre) -> None:
    await prepare(centre.client, sweep_every=timedelta(seconds=30))
    handle = centre.client.get_schedule_handle(names.SWEEP_SCHEDULE)
    await handle.delete()
    await prepare(centre.client, sweep_every=timedelta(seconds=30))
    assert (await handle.describe()).schedule.spec.intervals


async def test_what_is_prepared_sweeps_by_itself(centre: WorkflowCentre) -> None:
    cluster = await centre.create("unattended")
    await eventually(lambda: is_told(centre, cluster))
    await change_without_a_nudge(centre, cluster, "unattended")
    await prepare(centre.client, sweep_every=timedelta(seconds=1))
    await eventually(lambda: has_commits(centre, cluster, 2))


async def test_a_round_is_noted(idle_centre: WorkflowCentre) -> None:
    async with working(idle_centre):
        await sweep(idle_centre)
    async with idle_centre.database.read() as connection:
        assert await connection.scalar(select(last_sweep.c.ended_at)) is not None


async def completed_rounds(centre: WorkflowCentre) -> list[str]:
    """As Temporal lists them, in order."""
    listed = [run async for run in centre.client.list_workflows(sweep_schedule.COMPLETED)]
    return [run.id for run in sorted(listed, key=lambda run: run.start_time)]


async def test_old_rounds_leave_temporals_list_but_the_newest_and_one_that_was_ended_stay(
    idle_centre: WorkflowCentre, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = idle_centre.client
    ended = await client.start_workflow(names.SWEEP_TYPE, id="ended", task_queue=names.CLUSTERS_QUEUE)
    await ended.terminate()
    async with working(idle_centre):
        cluster = await idle_centre.create("listed")
        for _ in range(6):
            await sweep(idle_centre)
        await eventually(lambda: has_rounds(idle_centre, 6))
        before = await completed_rounds(idle_centre)
        monkeypatch.setattr(sweep_schedule, "KEPT", 2)
        monkeypatch.setattr(sweep_schedule, "MOST_FORGOTTEN", 3)
        await sweep(idle_centre)
        await eventually(lambda: has_rounds(idle_centre, 4))
        await sweep(idle_centre)
        await eventually(lambda: has_rounds(idle_centre, 3))
        assert (await completed_rounds(idle_centre))[0] == before[-1]
        assert await is_running(idle_centre, cluster)
    assert [run.id async for run in client.list_workflows("ExecutionStatus = 'Terminated'")] == ["ended"]


async def has_rounds(centre: WorkflowCentre, number: int) -> bool:
    return len(await completed_rounds(centre)) == number


class LockedList:
    """A fleet whose Temporal lets nobody delete a run."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def forget_sweeps(self) -> int:
        raise FleetUnavailable("Temporal does not answer (PERMISSION_DENIED).")


@pytest.mark.usefixtures("every_repository")
async def test_rounds_that_cannot_be_forgotten_keep_nothing_else_undone(idle_centre: WorkflowCentre) -> None:
    async with working(idle_centre, fleet=LockedList(idle_centre.fleet)):
        await idle_centre.create("kept-all-the-same")
        assert (await sweep(idle_centre)).kept == 2


async def test_a_deleted_schedule_is_made_again_and_a_paused_one_stays(
    idle_centre: WorkflowCentre, temporal: str, tmp_path: Path
) -> None:
    every, handle = timedelta(hours=1), idle_centre.client.get_schedule_handle(names.SWEEP_SCHEDULE)
    assert await idle_centre.fleet.restore_sweep(every)
    assert not await idle_centre.fleet.restore_sweep(every)
    assert not await idle_centre.fleet.sweep_is_paused()
    await handle.pause(note="maintenance")
    assert await idle_centre.fleet.sweep_is_paused()
    checks = await service_checks(Settings(home=tmp_path / "home", temporal_address=temporal))
    [found] = [check for check in checks if check.name == "sweep schedule"]
    assert (found.verdict, "is paused" in found.sentence) == ("wrong", True)
    assert not await restore_schedule(idle_centre.client, every)
    assert (await handle.describe()).schedule.state.paused
    await handle.delete()
    assert not await idle_centre.fleet.sweep_is_paused()
    assert await idle_centre.fleet.restore_sweep(every)
    assert not (await handle.describe()).schedule.state.paused
