"""A run whose history no longer fits ends, and the sweep begins the cluster's workflow anew from the database.

Temporal's files that were put back beside a living worker make such histories, and so would a defect of an upgrade.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from centre import WorkflowCentre, eventually, open_centre, working
from cluster_states import at_phase, is_told, kinds
from temporal_server import temporal_server
from temporalio import workflow
from temporalio.client import WorkflowExecutionStatus

from activities.upkeep import UpkeepActivities
from edgewright.application.shared_repositories import SharedRepositories
from edgewright.domain.cluster import Phase
from edgewright.messages import names
from edgewright.ports.clusters import ClusterRow
from workflows import policies
from workflows.cluster_loop import ClusterLoop


@pytest.fixture
def temporal(tmp_path: Path) -> Iterator[str]:
    """A server of its own: the sweep looks at all workflows."""
    with temporal_server(tmp_path / "temporal.log") as address:
        yield address


@pytest.fixture
async def idle_centre(temporal: str, tmp_path: Path) -> AsyncIterator[WorkflowCentre]:
    async with open_centre(tmp_path / "centre", temporal) as centre:
        yield centre


def upkeep_of(centre: WorkflowCentre) -> UpkeepActivities:
    ports = centre.ports
    return UpkeepActivities(
        ports.directory,
        ports.steps,
        ports.edge_access,
        ports.edge_reports,
        ports.git,
        repositories=SharedRepositories.on(ports),
        fleet=centre.fleet,
        ended_requests=ports.ended_requests,
        resealings=ports.resealings,
        upgrades=ports.upgrades,
    )


def is_current(row: ClusterRow) -> bool:
    return row.projection is not None and row.projection.change_done == row.change


async def test_the_sweep_rebuilds_what_no_longer_replays(
    idle_centre: WorkflowCentre, patchable: pytest.MonkeyPatch
) -> None:
    centre = idle_centre
    async with working(centre):
        cluster = await centre.create("other-history")
        await centre.until(cluster, at_phase(Phase.AWAITING_BOOTSTRAP))
        await eventually(lambda: is_told(centre, cluster))
    told = await kinds(centre, cluster)
    first_run = (await centre.handle(cluster).describe()).run_id
    look = ClusterLoop._look

    async def look_later(self: ClusterLoop) -> bool:
        await workflow.sleep(0.01)
        return await look(self)

    patchable.setattr(ClusterLoop, "_look", look_later)
    async with working(centre):
        await centre.fleet.nudge(cluster)

        async def failed() -> bool:
            handle = centre.client.get_workflow_handle(names.workflow_id(cluster), run_id=first_run)
            return (await handle.describe()).status is WorkflowExecutionStatus.FAILED

        await eventually(failed)

        async def begun_anew() -> bool:
            await centre.client.execute_workflow(
                names.SWEEP_TYPE, id=f"sweep-{cluster}", task_queue=names.CLUSTERS_QUEUE
            )
            described = await centre.handle(cluster).describe()
            return described.run_id != first_run and described.status is WorkflowExecutionStatus.RUNNING

        await eventually(begun_anew)
        await centre.write(cluster, "other-history", values={"replicas": 3})
        row = await centre.until(cluster, is_current)
        assert row.projection
        assert row.projection.ready
    assert [kind for kind in await kinds(centre, cluster) if kind == "phase.changed"] == [
        kind for kind in told if kind == "phase.changed"
    ], "nothing is told twice"


async def test_a_run_whose_tasks_all_fail_stands_still_and_is_begun_anew(
    idle_centre: WorkflowCentre, patchable: pytest.MonkeyPatch
) -> None:
    centre = idle_centre
    async with working(centre):
        cluster = await centre.create("stands-still")
        await eventually(lambda: is_told(centre, cluster))
        assert not await centre.fleet.stands_still(cluster)
    look = ClusterLoop._look

    async def defect(_self: ClusterLoop) -> bool:
        raise RuntimeError("a defect")

    patchable.setattr(ClusterLoop, "_look", defect)
    async with working(centre):
        await centre.write(cluster, "stands-still", values={"replicas": 3})

        async def still() -> bool:
            await centre.fleet.nudge(cluster)
            return await centre.fleet.stands_still(cluster)

        await eventually(still, seconds=60)
        patchable.setattr(ClusterLoop, "_look", look)
        await centre.fleet.begin_anew(cluster)
        await centre.until(cluster, is_current)
        assert not await centre.fleet.stands_still(cluster)


async def test_a_run_whose_tasks_fail_for_their_size_is_begun_anew_though_nothing_is_wanted_of_it(
    idle_centre: WorkflowCentre, patchable: pytest.MonkeyPatch
) -> None:
    """Temporal takes no payload over 2 MB. The row and its projection agree all the time."""
    centre = idle_centre
    async with working(centre):
        cluster = await centre.create("too-large")
        await eventually(lambda: is_told(centre, cluster))
    described = await centre.handle(cluster).describe()
    wedged, length = described.run_id, described.history_length
    look = ClusterLoop._look

    async def look_at_too_much(self: ClusterLoop) -> bool:
        run = workflow.info()
        if run.run_id == wedged and run.get_current_history_length() > length:
            await workflow.execute_activity("read_wanted", "x" * 3_000_000, **policies.READ)
        return await look(self)

    patchable.setattr(ClusterLoop, "_look", look_at_too_much)
    upkeep = upkeep_of(centre)
    async with working(centre):
        await centre.fleet.nudge(cluster)

        async def begun_anew() -> bool:
            found = await upkeep.nudge()
            assert cluster not in await centre.directory.unfinished()
            return found.begun_anew == 1

        await eventually(begun_anew)
        assert (await centre.handle(cluster).describe()).run_id != wedged
        await centre.write(cluster, "too-large", values={"replicas": 3})
        await centre.until(cluster, is_current)


async def test_what_waits_for_a_worker_does_not_stand_still(idle_centre: WorkflowCentre) -> None:
    cluster = uuid4()
    await idle_centre.write(cluster, "no-worker")
    assert not await idle_centre.fleet.stands_still(cluster)
    assert not await idle_centre.fleet.stands_still(uuid4())
