"""What the centre keeps of a purge: asked for when it can be done, and told as it ended."""

from typing import Any
from uuid import UUID

import pytest
from database_stores import ACTOR, Store, code_of

from edgewright.domain.cluster import StepName, Workloads
from edgewright.domain.ended import Purge
from edgewright.errors import Gone

TAKEN = "The kind SealedSecret and the sealing keys were removed from the edge."


async def told(store: Store, cluster: UUID, kind: str) -> list[str]:
    return [event.message for event in await store.audit.timeline(cluster) if event.kind == kind]


async def end(store: Store, cluster: UUID) -> str:
    """What is answered afterwards."""
    await store.steps.remove_central_entries(await store.fence(cluster), StepName.REMOVE_SETUP_STATUS)
    with pytest.raises(Gone) as gone:
        await store.wishes.request_deletion(cluster, actor=ACTOR)
    return gone.value.detail


@pytest.mark.parametrize("how", [{"force": True}, {"workloads": Workloads.KEEP}])
async def test_what_cannot_be_purged_is_refused_and_nothing_changes(store: Store, how: dict[str, Any]) -> None:
    cluster = await store.joined()
    asked = store.wishes.request_deletion(cluster, actor=ACTOR, purge=True, **how)
    assert await code_of(asked) == "purge_impossible"
    assert not (await store.row(cluster)).purge.asked
    assert await told(store, cluster, "cluster.deletion_requested") == []


async def test_without_an_edge_that_can_answer_there_is_nothing_to_purge(store: Store) -> None:
    cluster = await store.create()
    assert await code_of(store.wishes.request_deletion(cluster, actor=ACTOR, purge=True)) == "purge_impossible"
    assert await told(store, cluster, "cluster.deletion_requested") == []


async def test_a_purge_may_be_added_until_the_deletion_has_begun(store: Store) -> None:
    early, late, kept = [await store.joined(name) for name in ("early", "late", "kept")]
    await store.wishes.request_deletion(early, actor=ACTOR)
    first = await store.wishes.request_deletion(early, actor=ACTOR, purge=True)
    assert first.purge.asked
    assert await store.wishes.request_deletion(early, actor=ACTOR, purge=True) == first
    assert (await store.wishes.undelete(early, actor=ACTOR)).purge == Purge()

    await store.wishes.request_deletion(late, actor=ACTOR)
    await store.steps.begin_deletion(await store.fence(late))
    assert await code_of(store.wishes.request_deletion(late, actor=ACTOR, purge=True)) == "purge_too_late"
    await store.wishes.request_deletion(kept, actor=ACTOR, workloads=Workloads.KEEP)
    assert await code_of(store.wishes.request_deletion(kept, actor=ACTOR, purge=True)) == "purge_impossible"


async def test_a_purge_that_succeeded_is_told_everywhere(store: Store) -> None:
    cluster = await store.joined()
    await store.wishes.request_deletion(cluster, actor=ACTOR, purge=True)
    await store.edge_reports.goodbye(cluster, 1, Purge(done=True))
    assert await told(store, cluster, "edge.purged") == [TAKEN]
    assert (await end(store, cluster)).endswith(TAKEN)
    [message] = await told(store, cluster, "cluster.deleted")
    assert message.endswith(TAKEN)


async def test_why_nothing_was_taken_is_told_and_what_can_be_done(store: Store) -> None:
    cluster = await store.joined()
    await store.wishes.request_deletion(cluster, actor=ACTOR, purge=True)
    await store.edge_reports.goodbye(cluster, 1, Purge(done=False, problem="There are SealedSecrets left: shop/a."))
    advice = "To remove them, run the uninstall script with --purge."
    said = f"stay on the edge. There are SealedSecrets left: shop/a. {advice}"
    assert (await told(store, cluster, "edge.not_purged"))[0].endswith(said)
    assert (await end(store, cluster)).endswith(said)


async def test_an_edge_too_old_to_purge_says_nothing_and_the_centre_says_that(store: Store) -> None:
    cluster = await store.joined()
    await store.wishes.request_deletion(cluster, actor=ACTOR, purge=True)
    await store.edge_reports.goodbye(cluster, 1)
    [message] = await told(store, cluster, "edge.not_purged")
    assert "stay on the edge: it has not confirmed their removal" in message
    assert message in await end(store, cluster)


async def test_a_deletion_that_ends_without_goodbye_has_purged_nothing(store: Store) -> None:
    cluster = await store.joined()
    await store.wishes.request_deletion(cluster, actor=ACTOR, purge=True)
    hastened = await store.wishes.request_deletion(cluster, actor=ACTOR, force=True)
    assert hastened.force and hastened.purge.asked
    assert "it has not confirmed their removal" in await end(store, cluster)
    assert len(await told(store, cluster, "edge.not_purged")) == 1


async def test_any_other_deletion_says_that_they_stay(store: Store) -> None:
    cluster, alone = await store.joined("one"), await store.create("alone")
    await store.wishes.request_deletion(cluster, actor=ACTOR)
    await store.edge_reports.goodbye(cluster, 1, Purge(done=True))
    assert "edge.purged" not in await store.kinds(cluster), "nobody has asked for it"
    stays = "The kind SealedSecret and the sealing keys stay on the edge."
    assert (await end(store, cluster)).endswith(stays)
    await store.wishes.request_deletion(alone, actor=ACTOR)
    assert "edge" not in await end(store, alone)
