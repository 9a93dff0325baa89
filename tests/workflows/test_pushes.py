"""What somebody pushes is wanted of the edge, as what the centre commits is."""

import asyncio
from uuid import UUID

from centre import Centre

from edgewright.domain.cluster import ConditionStatus, ConditionType
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.edge_reports import Heartbeat
from edgewright.ports.git_server import CommitMessage


def synced(row: ClusterRow) -> ConditionStatus | None:
    return row.projection.status_of(ConditionType.SYNCED) if row.projection else None


async def applied(centre: Centre, cluster: UUID, commit: str | None) -> None:
    """The edge says so."""
    await centre.ports.reports.heartbeats([Heartbeat(cluster, 1, observed_revision=commit)])
    await centre.ports.fleet.nudge(cluster)


async def test_a_push_is_missing_until_the_edge_has_applied_it(centre: Centre) -> None:
    cluster = await centre.create("pushed-to")
    await centre.bootstrap(cluster)
    head = await asyncio.to_thread(centre.git.head, cluster)
    await applied(centre, cluster, head)
    await centre.until(cluster, lambda row: synced(row) is ConditionStatus.TRUE)

    message = CommitMessage("Break it", "token:operator")
    pushed = await asyncio.to_thread(
        lambda: centre.git.commit(cluster, {"by-hand/broken.yaml": b"a: [b"}, message, expected_head=head)
    )
    await centre.ports.fleet.nudge(cluster)
    row = await centre.until(cluster, lambda row: synced(row) is ConditionStatus.FALSE)
    assert row.projection is not None
    [told] = [each for each in row.projection.conditions if each.type is ConditionType.SYNCED]
    assert f"not yet {pushed[:12]}" in told.message

    await applied(centre, cluster, pushed)
    await centre.until(cluster, lambda row: synced(row) is ConditionStatus.TRUE)
