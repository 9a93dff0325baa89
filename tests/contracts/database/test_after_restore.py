"""A database that went back in time begins anew: everything is rendered, and no position is given out twice."""

from database_stores import NOON, Store

from edgewright.adapters.database.upkeep.after_restore import begin_anew, clusters_with_staged_secrets, is_listened_to
from edgewright.domain.cluster import Phase, StepName
from edgewright.domain.projection import Done

DONE = Done(generation=1, commissioning=1, rendered_digest="d1")


async def test_each_open_cluster_is_due_to_be_rendered_and_says_why(store: Store) -> None:
    cluster = await store.commissioned()
    await store.publish(cluster, Phase.AWAITING_BOOTSTRAP, ready=True, done=DONE)
    before, last = await store.row(cluster), await store.audit.last_position()
    assert await begin_anew(store.database, made_at=NOON) == [cluster]
    row = await store.row(cluster)
    assert row.projection is not None
    assert row.projection.done == Done(generation=1, commissioning=1)
    assert row.change == before.change + 1
    assert cluster in await store.directory.unfinished()
    event = (await store.audit.timeline(cluster))[-1]
    assert (event.kind, event.detail) == ("centre.restored", {"made_at": "2026-03-01T12:00:00Z"})
    assert event.position > last + 1_000_000


async def test_a_cluster_that_is_being_deleted_gets_no_repository_back(store: Store) -> None:
    cluster = await store.commissioned()
    await store.wishes.request_deletion(cluster, actor="test")
    await store.steps.begin_deletion(await store.fence(cluster))
    assert await begin_anew(store.database, made_at=NOON) == []


async def test_a_cluster_whose_deletion_can_be_taken_back_gets_its_repository_back(store: Store) -> None:
    cluster = await store.commissioned()
    await store.wishes.request_deletion(cluster, actor="test")
    assert await begin_anew(store.database, made_at=NOON) == [cluster]


async def test_a_deletion_that_had_ended_and_was_not_told_yet_is_found_by_the_sweep(store: Store) -> None:
    """The copy is of the moment between the end of a deletion and the word of its workflow."""
    untold, told = await store.commissioned("untold"), await store.commissioned("told")
    for cluster in (untold, told):
        await store.wishes.request_deletion(cluster, actor="test")
        await store.steps.remove_central_entries(await store.fence(cluster), StepName.REMOVE_SETUP_STATUS)
    await store.publish(told, Phase.DELETED, ready=False)
    await begin_anew(store.database, made_at=NOON)
    assert await store.directory.underway() == [untold]


async def test_secrets_that_wait_are_found(store: Store) -> None:
    cluster = await store.commissioned()
    assert await clusters_with_staged_secrets(store.database) == []
    await store.staging.stage([await store.change(cluster)])
    assert await clusters_with_staged_secrets(store.database) == [cluster]


async def test_a_gateway_that_was_heard_a_moment_ago_counts_as_serving(timed: Store) -> None:
    assert not await is_listened_to(timed.database)
    await timed.edge_reports.keep_listening()
    assert await is_listened_to(timed.database)
    timed.clock.advance(minutes=1)
    assert not await is_listened_to(timed.database)
