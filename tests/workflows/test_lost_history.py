"""A workflow that is started empty goes on from the last projection: its predecessor's history is lost."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from centre import WorkflowCentre, eventually, open_centre, working
from cluster_states import StatusAway, at_phase, at_step, has_commits, is_told, kinds, stage
from temporal_server import temporal_server

from edgewright.domain.cluster import ConditionStatus, ConditionType, Phase, StepName
from edgewright.domain.wellknown import APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART
from edgewright.messages import names
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.git_server import CommitId


@pytest.fixture(scope="module")
def other_temporal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that has never heard of any cluster."""
    with temporal_server(tmp_path_factory.mktemp("other-temporal") / "server.log") as address:
        yield address


@asynccontextmanager
async def history_lost(
    centre: WorkflowCentre, cluster: UUID, folder: Path, address: str
) -> AsyncIterator[WorkflowCentre]:
    """The same stores with a new Temporal; asserts that going on from the last projection makes nothing anew."""
    before = await centre.row(cluster)
    commits = await asyncio.to_thread(centre.git.log, cluster, limit=100)
    entries = await written_entries(centre, cluster)
    events = await kinds(centre, cluster)
    assert before.projection
    async with open_centre(folder, address) as found, working(found):
        await found.fleet.nudge(cluster)
        await eventually(lambda: is_told(found, cluster))
        after = await found.row(cluster)
        assert after.projection
        assert after.projection.model_copy(update={"sequence": before.projection.sequence}) == before.projection
        assert await asyncio.to_thread(found.git.log, cluster, limit=100) == commits
        assert await written_entries(found, cluster) == entries
        assert await kinds(found, cluster) == events
        yield found


def has_told_of(commit: CommitId | None) -> Callable[[ClusterRow], bool]:
    """A workflow tells of its own commits a moment later; one that has lost its history tells of them at once."""
    return lambda row: row.projection is not None and row.projection.desired_revision == commit


async def written_entries(centre: WorkflowCentre, cluster: UUID) -> list[int]:
    return [change.position for change in await centre.ports.config.changes(after=0) if change.object == cluster]


async def test_a_cluster_that_awaits_its_bootstrap_outlives_temporals_history(
    idle_centre: WorkflowCentre, tmp_path: Path, other_temporal: str
) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("lost-awaiting")
        await eventually(lambda: is_told(idle_centre, cluster))
    async with history_lost(idle_centre, cluster, tmp_path, other_temporal) as found:
        await found.bootstrap(cluster)
        await found.until(cluster, at_phase(Phase.ACTIVE))


async def test_an_active_cluster_outlives_temporals_history(
    idle_centre: WorkflowCentre, tmp_path: Path, other_temporal: str
) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("lost-active")
        await idle_centre.bootstrap(cluster)
        await idle_centre.until(cluster, at_phase(Phase.ACTIVE))
        change = await stage(idle_centre, cluster, "before")
        await idle_centre.fleet.change_secrets(cluster, [change.request])
        await idle_centre.until(cluster, has_told_of(idle_centre.git.head(cluster)))
        await eventually(lambda: is_told(idle_centre, cluster))
    async with history_lost(idle_centre, cluster, tmp_path, other_temporal) as found:
        await found.write(cluster, "lost-active", values={"replicas": 3})
        await found.until(cluster, lambda row: bool(row.projection and row.projection.change_done == row.change))
        await eventually(lambda: has_commits(found, cluster, 3))


async def test_a_removed_cluster_outlives_temporals_history(
    idle_centre: WorkflowCentre, tmp_path: Path, other_temporal: str
) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("lost-removed")
        await idle_centre.wishes.request_removal(cluster, actor="token:test")
        await idle_centre.fleet.nudge(cluster)
        await idle_centre.until(cluster, at_phase(Phase.REMOVED))
        await eventually(lambda: is_told(idle_centre, cluster))
    async with history_lost(idle_centre, cluster, tmp_path, other_temporal) as found:
        await found.write(cluster, "lost-removed")
        await found.until(cluster, lambda row: bool(row.projection and row.projection.ready))
        assert await has_commits(found, cluster, 1)


async def test_a_deletion_that_waits_for_its_edge_outlives_temporals_history(
    idle_centre: WorkflowCentre, tmp_path: Path, other_temporal: str
) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("lost-detaching")
        await idle_centre.bootstrap(cluster)
        await idle_centre.wishes.request_deletion(cluster, actor="token:test")
        await idle_centre.fleet.nudge(cluster)
        await idle_centre.until(cluster, at_step(StepName.AWAIT_EMPTY))
        await idle_centre.fleet.skip_step(cluster, StepName.AWAIT_EMPTY, reason="scrap", actor="token:test")
        await idle_centre.until(cluster, at_step(StepName.AWAIT_GOODBYE))
        await eventually(lambda: is_told(idle_centre, cluster))
    async with history_lost(idle_centre, cluster, tmp_path, other_temporal) as found:
        await found.ports.edge_reports.goodbye(cluster, 1)
        await found.fleet.nudge(cluster)
        row = await found.until(cluster, at_phase(Phase.DELETED))
        assert row.projection and [residue.reason for residue in row.projection.residue] == ["scrap"]
        told = Counter(e.detail["step"] for e in await found.audit.timeline(cluster) if e.kind == "step.done")
        assert set(told.values()) == {1}


async def block(centre: WorkflowCentre, cluster: UUID) -> None:
    """Writes a cluster that a bad template blocks."""
    chart = await centre.ports.config.get(APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART)
    assert chart is not None
    broken = {**chart.body, "values": {"site": "{{ no.such.thing }}"}}
    await centre.ports.config.put(APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART, broken, actor="token:test")
    await centre.write(cluster, "lost-blocked")
    await centre.until(cluster, is_blocked)
    await eventually(lambda: is_told(centre, cluster))


def is_blocked(row: ClusterRow) -> bool:
    return bool(row.projection and row.projection.status_of(ConditionType.BLOCKED) is ConditionStatus.TRUE)


async def test_a_blocked_cluster_outlives_temporals_history(
    idle_centre: WorkflowCentre, tmp_path: Path, other_temporal: str
) -> None:
    cluster = uuid4()
    sound = await idle_centre.ports.config.get(APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART)
    assert sound is not None
    async with working(idle_centre):
        await block(idle_centre, cluster)
    async with open_centre(tmp_path, other_temporal) as found, working(found):
        await found.fleet.nudge(cluster)
        await eventually(lambda: is_told(found, cluster))
        assert is_blocked(await found.row(cluster))
        await found.ports.config.put(APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART, sound.body, actor="token:test")
        await found.fleet.nudge(cluster)
        await found.until(cluster, lambda row: bool(row.projection and row.projection.ready))


async def test_what_blocked_a_cluster_may_be_mended_while_temporal_is_away(
    idle_centre: WorkflowCentre, tmp_path: Path, other_temporal: str
) -> None:
    cluster = uuid4()
    sound = await idle_centre.ports.config.get(APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART)
    assert sound is not None
    async with working(idle_centre):
        await block(idle_centre, cluster)
    await idle_centre.ports.config.put(APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART, sound.body, actor="token:test")
    async with open_centre(tmp_path, other_temporal) as found, working(found):
        await found.fleet.nudge(cluster)
        row = await found.until(cluster, lambda row: bool(row.projection and row.projection.ready), seconds=10)
        assert not is_blocked(row)


async def test_commissioning_goes_on_in_the_middle_without_temporals_history(
    idle_centre: WorkflowCentre, tmp_path: Path, other_temporal: str
) -> None:
    cluster = uuid4()
    async with working(idle_centre, steps=StatusAway(idle_centre.steps)):
        await idle_centre.write(cluster, "lost-middle")
        await idle_centre.until(
            cluster, lambda row: bool(row.projection and "cannot be written" in row.projection.waiting_for)
        )
    async with open_centre(tmp_path, other_temporal) as found, working(found):
        await found.fleet.nudge(cluster)
        await eventually(lambda: is_told(found, cluster))
        await found.fleet.retry_step(cluster, StepName.PUBLISH_STATUS, actor="token:test")
        await found.until(cluster, lambda row: bool(row.projection and row.projection.done.rendered_digest))
        assert await has_commits(found, cluster, 1)


async def test_what_a_lost_workflow_was_asked_before_its_first_reading_is_answered_and_told(
    idle_centre: WorkflowCentre, tmp_path: Path, other_temporal: str
) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("lost-asked")
    async with open_centre(tmp_path, other_temporal) as found:
        await found.fleet.nudge(cluster)
        await found.handle(cluster).signal(names.SIGNAL_EDGE_STATUS, {"hosts": "no list"})
        async with working(found):
            await eventually(lambda: is_refused(found, cluster))


async def is_refused(centre: WorkflowCentre, cluster: UUID) -> bool:
    return "edge_status.refused" in await kinds(centre, cluster)
