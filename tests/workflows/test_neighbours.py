"""Clusters beside each other: what happens to one is nothing to the others."""

import asyncio
from functools import partial
from uuid import UUID

from centre import WorkflowCentre, eventually
from cluster_states import at_phase, has_commits, is_told, kinds

from edgewright.domain.cluster import Phase


async def test_a_change_of_one_cluster_is_nothing_to_the_others(centre: WorkflowCentre) -> None:
    changed, *others = [await centre.create(f"neighbour-{number}") for number in range(3)]
    for cluster in (changed, *others):
        await centre.until(cluster, at_phase(Phase.AWAITING_BOOTSTRAP))
        await eventually(partial(is_told, centre, cluster))
    before = [(await kinds(centre, other), await centre.row(other), await runs(centre, other)) for other in others]
    await centre.write(changed, "neighbour-0", values={"replicas": 3})
    await eventually(lambda: has_commits(centre, changed, 2))
    await eventually(lambda: is_told(centre, changed))
    after = [(await kinds(centre, other), await centre.row(other), await runs(centre, other)) for other in others]
    assert after == before


async def runs(centre: WorkflowCentre, cluster: UUID) -> int | None:
    """Events in the history of a cluster's workflow: not even a look costs none."""
    return (await centre.handle(cluster).describe()).history_length


async def test_deletions_at_once_all_end(centre: WorkflowCentre) -> None:
    clusters = [await centre.create(f"doomed-{number}") for number in range(5)]
    for cluster in clusters:
        await centre.until(cluster, at_phase(Phase.AWAITING_BOOTSTRAP))

    async def delete(number: int) -> None:
        await centre.wishes.request_deletion(clusters[number], actor="token:test")
        await centre.fleet.nudge(clusters[number])

    await asyncio.gather(*(delete(number) for number in range(5)))
    for cluster in clusters:
        await centre.until(cluster, at_phase(Phase.DELETED))
    survivor = await centre.create("survivor")
    row = await centre.until(survivor, at_phase(Phase.AWAITING_BOOTSTRAP))
    assert row.projection
    assert row.projection.ready
