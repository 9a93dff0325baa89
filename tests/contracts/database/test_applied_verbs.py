"""A message to a workflow counts once, whoever brings it again."""

from uuid import uuid4

import pytest
from database_stores import ACTOR, Store
from sqlalchemy import select

from edgewright.adapters.database.rows.applied_verbs import applied_verbs
from edgewright.domain.cluster import StepName
from edgewright.errors import Conflict, Gone
from edgewright.ports.clusters import Once


async def test_a_repeated_attempt_of_the_same_run_changes_nothing(store: Store) -> None:
    cluster, once = await store.joined(), Once(uuid4(), "run-1")
    await store.wishes.set_paused(cluster, paused=True, reason="wait", actor=ACTOR, once=once)
    await store.wishes.set_paused(cluster, paused=False, reason="", actor=ACTOR)
    await store.wishes.set_paused(cluster, paused=True, reason="wait", actor=ACTOR, once=once)
    assert not (await store.row(cluster)).paused


async def test_what_another_run_brings_again_is_refused(store: Store) -> None:
    cluster, verb = await store.joined(), uuid4()
    await store.wishes.request_deletion(cluster, actor=ACTOR, once=Once(verb, "run-1"))
    await store.wishes.undelete(cluster, actor=ACTOR)
    with pytest.raises(Conflict) as refused:
        await store.wishes.request_deletion(cluster, actor=ACTOR, once=Once(verb, "run-2"))
    assert refused.value.code == "verb_repeated"
    assert (await store.row(cluster)).desired == "present"


async def test_what_fails_is_not_noted_as_applied(store: Store) -> None:
    cluster, once = await store.joined(), Once(uuid4(), "run-1")
    await store.wishes.set_paused(cluster, paused=True, reason="", actor=ACTOR)
    await store.wishes.set_paused(cluster, paused=False, reason="", actor=ACTOR)
    with pytest.raises(Conflict):
        await store.wishes.set_paused(cluster, paused=True, reason="", actor=ACTOR, seen=0, once=once)
    await store.wishes.set_paused(cluster, paused=True, reason="", actor=ACTOR, once=once)
    assert (await store.row(cluster)).paused


async def test_a_deleted_cluster_leaves_no_messages_and_takes_none_again(store: Store) -> None:
    cluster, other = await store.create(), await store.create("other")
    pause, deletion = Once(uuid4(), "run-1"), Once(uuid4(), "run-1")
    await store.wishes.set_paused(other, paused=True, reason="", actor=ACTOR, once=Once(uuid4(), "run-1"))
    await store.wishes.set_paused(cluster, paused=True, reason="", actor=ACTOR, once=pause)
    await store.wishes.request_deletion(cluster, actor=ACTOR, force=True, once=deletion)
    fence = await store.fence(cluster)
    for step in (StepName.REMOVE_ADDRESS, StepName.REMOVE_EDGE_STATUS, StepName.REMOVE_SETUP_STATUS):
        await store.steps.remove_central_entries(fence, step)
    async with store.database.read() as connection:
        assert list(await connection.scalars(select(applied_verbs.c.cluster))) == [other]
    for run in ("run-1", "run-2"):
        with pytest.raises(Gone):
            await store.wishes.set_paused(cluster, paused=False, reason="", actor=ACTOR, once=Once(pause.verb, run))
        with pytest.raises(Gone):
            await store.wishes.request_deletion(cluster, actor=ACTOR, once=Once(deletion.verb, run))
        with pytest.raises(Gone):
            await store.edge_reports.write_status(
                cluster,
                {"hosts": []},
                certificate=None,
                certificate_problem=None,
                generation=None,
                actor="temporal",
                once=Once(uuid4(), run),
            )
