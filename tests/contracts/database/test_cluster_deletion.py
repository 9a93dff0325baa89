"""What operators want of a cluster that is to go: deleted, undeleted, forgotten."""

from datetime import timedelta

import pytest
from database_stores import ACTOR, Store, close, code_of, entry, wanted

from edgewright.domain.cluster import (
    ClusterSettings,
    CredentialState,
    Desired,
    StepName,
    Workloads,
)
from edgewright.domain.wellknown import (
    APP_CLUSTER_SETTINGS,
)
from edgewright.errors import Superseded
from edgewright.ports.secret_staging import StagedState

LABELLED = ClusterSettings(labels={"site": "aachen"}, lease_seconds=60)


async def test_deletion_is_recorded_whole(timed: Store) -> None:
    cluster = await timed.create()
    row = await timed.wishes.request_deletion(
        cluster, actor=ACTOR, deadline=timedelta(hours=2), workloads=Workloads.KEEP
    )
    assert (row.desired, row.workloads, row.force) == (Desired.DELETED, Workloads.KEEP, False)
    assert row.deadline == timed.clock.at + timedelta(hours=2)
    assert await entry(timed, cluster) is None
    reading = await wanted(timed, cluster)
    assert (reading.desired, reading.deadline, reading.change) == (Desired.DELETED, row.deadline, 2)
    assert await timed.kinds(cluster) == ["cluster.created", "cluster.deletion_requested"]


async def test_deletion_again_is_the_same_one_and_can_only_be_hastened(timed: Store) -> None:
    cluster = await timed.create()
    first = await timed.wishes.request_deletion(cluster, actor=ACTOR, deadline=timedelta(hours=2))
    timed.clock.advance(minutes=1)
    assert await timed.wishes.request_deletion(cluster, actor=ACTOR) == first
    forced = await timed.wishes.request_deletion(cluster, actor=ACTOR, force=True)
    assert (forced.force, forced.deadline, forced.change) == (True, first.deadline, first.change + 1)
    sooner = await timed.wishes.request_deletion(cluster, actor=ACTOR, deadline=timedelta(minutes=5))
    assert sooner.force
    assert sooner.deadline == timed.clock.at + timedelta(minutes=5)


async def test_a_deletion_refuses_every_other_wish(store: Store) -> None:
    cluster = await store.create()
    await store.wishes.request_deletion(cluster, actor=ACTOR)
    assert await code_of(store.write(cluster)) == "deleting"
    assert await code_of(store.wishes.write_settings(cluster, {}, actor=ACTOR)) == "deleting"
    assert await code_of(store.wishes.request_recreation(cluster, actor=ACTOR, new_hardware=True)) == "deleting"
    assert not await store.wishes.request_removal(cluster, actor=ACTOR)


async def test_staged_secrets_end_with_the_wish_for_the_cluster(store: Store) -> None:
    removed, deleted = await store.create("one"), await store.create("two")
    changes = {cluster: await store.change(cluster) for cluster in (removed, deleted)}
    for change in changes.values():
        await store.staging.stage([change])
    await store.wishes.request_removal(removed, actor=ACTOR)
    await store.wishes.request_deletion(deleted, actor=ACTOR)
    for cluster, code in ((removed, "removed"), (deleted, "deleting")):
        [ended] = await store.staging.request(changes[cluster].request)
        assert (ended.state, ended.refusal_code) == (StagedState.REFUSED, code)
        assert (await wanted(store, cluster)).secrets_pending == 0


async def test_deleting_a_removed_cluster_lets_its_edge_in_to_detach(store: Store) -> None:
    cluster = await store.joined()
    await store.wishes.request_removal(cluster, actor=ACTOR)
    await store.edge_access.suspend(await store.fence(cluster))
    await store.wishes.request_deletion(cluster, actor=ACTOR)
    assert {one.state for one in await store.edge_access.credentials(cluster)} == {CredentialState.ACTIVE}
    row = await store.wishes.undelete(cluster, actor=ACTOR)
    assert row.desired is Desired.REMOVED
    assert await entry(store, cluster) is None
    assert {one.state for one in await store.edge_access.credentials(cluster)} == {CredentialState.SUSPENDED}


async def test_undelete_puts_the_configuration_back(store: Store) -> None:
    cluster = await store.create(values={"replicas": 2})
    await store.wishes.request_deletion(cluster, actor=ACTOR, force=True, workloads=Workloads.KEEP)
    row = await store.wishes.undelete(cluster, actor=ACTOR)
    back = await entry(store, cluster)
    assert back is not None
    assert back.body == {"name": "press-shop", "namespace": "edgewright", "values": {"replicas": 2}}
    assert (row.desired, row.deadline, row.force, row.change) == (Desired.PRESENT, None, False, 3)
    assert row.workloads is Workloads.REMOVE
    assert (await wanted(store, cluster)).commissioning == 1
    assert await code_of(store.wishes.undelete(cluster, actor=ACTOR)) == "not_deleting"


async def test_undelete_is_too_late_once_the_deletion_has_begun(store: Store) -> None:
    cluster = await store.create()
    with pytest.raises(Superseded):
        await store.steps.begin_deletion(await store.fence(cluster))
    await store.wishes.request_deletion(cluster, actor=ACTOR)
    fence = await store.fence(cluster)
    await store.steps.begin_deletion(fence)
    await store.steps.begin_deletion(fence)
    assert await code_of(store.wishes.undelete(cluster, actor=ACTOR)) == "too_late"
    assert (await store.row(cluster)).desired is Desired.DELETED


async def test_undelete_before_the_beginning_stops_it(store: Store) -> None:
    cluster = await store.create()
    await store.wishes.request_deletion(cluster, actor=ACTOR)
    fence = await store.fence(cluster)
    await store.wishes.undelete(cluster, actor=ACTOR)
    with pytest.raises(Superseded):
        await store.steps.begin_deletion(fence)


async def test_a_finished_deletion_frees_the_name_and_never_the_uuid(store: Store) -> None:
    cluster = await store.create(settings=LABELLED)
    fence = await close(store, cluster)
    await store.steps.remove_central_entries(fence, StepName.REMOVE_SETUP_STATUS)
    row = await store.row(cluster)
    assert (row.closed, row.spec.name, row.settings) == (True, "press-shop", LABELLED)
    assert (await wanted(store, cluster)).closed
    assert await entry(store, cluster, APP_CLUSTER_SETTINGS) is None
    assert await store.directory.find("press-shop") is None
    assert await store.directory.name_of(cluster) == "press-shop"
    assert cluster not in await store.directory.open_clusters()
    assert await code_of(store.write(cluster)) == "cluster_deleted"
    for attempt in (
        store.wishes.request_deletion(cluster, actor=ACTOR),
        store.wishes.request_removal(cluster, actor=ACTOR),
        store.wishes.undelete(cluster, actor=ACTOR),
        store.wishes.set_paused(cluster, paused=True, reason="", actor=ACTOR),
        store.wishes.request_recreation(cluster, actor=ACTOR, new_hardware=True),
    ):
        assert await code_of(attempt) == "cluster_deleted"
    assert (await store.kinds(cluster)).count("cluster.deleted") == 1
    assert await store.create("press-shop") != cluster
