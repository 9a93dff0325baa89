"""What somebody pushes is wanted of the edge, as what the centre commits is."""

import asyncio
from uuid import UUID

from centre import WorkflowCentre

from edgewright.domain.cluster import ConditionStatus, ConditionType
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.edge_reports import Heartbeat
from edgewright.ports.git_server import CommitMessage


def synced(row: ClusterRow) -> ConditionStatus | None:
    return row.projection.status_of(ConditionType.SYNCED) if row.projection else None


async def applied(centre: WorkflowCentre, cluster: UUID, commit: str | None) -> None:
    """The edge says so."""
    await centre.ports.edge_reports.heartbeats([Heartbeat(cluster, 1, observed_revision=commit)])
    await centre.fleet.nudge(cluster)


async def test_a_push_is_missing_until_the_edge_has_applied_it(centre: WorkflowCentre) -> None:
    cluster = await centre.create("pushed-to")
    await centre.bootstrap(cluster)
    head = await asyncio.to_thread(centre.git.head, cluster)
    await applied(centre, cluster, head)
    await centre.until(cluster, lambda row: synced(row) is ConditionStatus.TRUE)

    message = CommitMessage("Break it", "token:operator")
    pushed = await asyncio.to_thread(
        lambda: centre.git.commit(cluster, {"by-hand/broken.yaml": b"a: [b"}, message, expected_head=head)
    )
    await centre.fleet.nudge(cluster)
    row = await centre.until(cluster, lambda row: synced(row) is ConditionStatus.FALSE)
    assert row.projection is not None
    [told] = [each for each in row.projection.conditions if each.type is ConditionType.SYNCED]
    assert f"not yet {pushed[:12]}" in told.message

    await applied(centre, cluster, pushed)
    await centre.until(cluster, lambda row: synced(row) is ConditionStatus.TRUE)


async def test_what_was_rendered_again_is_missing_until_the_edge_has_applied_it(centre: WorkflowCentre) -> None:
    """Nobody nudges after the rendering: Synced follows from the commit alone."""
    cluster = await centre.create("rendered-again")
    await centre.bootstrap(cluster)
    before = await asyncio.to_thread(centre.git.head, cluster)
    await applied(centre, cluster, before)
    await centre.until(cluster, lambda row: synced(row) is ConditionStatus.TRUE)

    await centre.write(cluster, "rendered-again", values={"replicas": 3})
    row = await centre.until(cluster, lambda row: bool(row.projection and row.projection.change_done == row.change))
    rendered = await asyncio.to_thread(centre.git.head, cluster)
    assert rendered is not None and rendered != before
    told = row.projection.condition(ConditionType.SYNCED) if row.projection else None
    assert told is not None and told.status is ConditionStatus.FALSE
    assert f"not yet {rendered[:12]}" in told.message

    await applied(centre, cluster, rendered)
    await centre.until(cluster, lambda row: synced(row) is ConditionStatus.TRUE)


async def test_a_release_that_fails_is_told_and_heals(centre: WorkflowCentre) -> None:
    cluster = await centre.create("released")
    await centre.bootstrap(cluster)
    await applied(centre, cluster, await asyncio.to_thread(centre.git.head, cluster))
    await centre.until(cluster, lambda row: synced(row) is ConditionStatus.TRUE)

    await reported(centre, cluster, "False")
    row = await centre.until(cluster, lambda row: synced(row) is ConditionStatus.FALSE)
    assert row.projection is not None
    told = {each.type: each for each in row.projection.conditions}
    for kind in (ConditionType.SYNCED, ConditionType.HEALTHY):
        assert (told[kind].status, told[kind].reason) == (ConditionStatus.FALSE, "ReleaseFailed")
        assert "The release edge-cluster failed: values don't meet the schema" in told[kind].message

    await reported(centre, cluster, "True")
    row = await centre.until(cluster, lambda row: synced(row) is ConditionStatus.TRUE)
    assert row.projection and row.projection.status_of(ConditionType.HEALTHY) is ConditionStatus.TRUE


async def reported(centre: WorkflowCentre, cluster: UUID, ready: str) -> None:
    """The edge says whether its release is ready."""
    condition = {"type": "Ready", "status": ready, "message": "values don't meet the schema"}
    body = {"flux": {"releases": [{"name": "edge-cluster", "conditions": [condition]}]}}
    assert await centre.ports.edge_reports.write_status(
        cluster, body, certificate=None, certificate_problem=None, generation=1, actor="agent"
    )
    await centre.fleet.nudge(cluster)
