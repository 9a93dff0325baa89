"""Ciphertext on its way to a repository."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from database_stores import ACTOR, NOON, Store, key_of, wanted
from sqlalchemy import Connection, event, select

from edgewright.adapters.database.engine.portions import execute_in_portions
from edgewright.adapters.database.secrets import secret_staging
from edgewright.adapters.database.tables import staged_changes
from edgewright.domain.secret_template import TemplateChange
from edgewright.errors import Conflict, NotFound, Superseded, Waiting
from edgewright.ports.secret_staging import StagedChange, StagedState


async def stage(store: Store, cluster: Any, *keys: str, **more: Any) -> Any:
    """One request with these keys; returns its ID."""
    request = uuid4()
    await store.staging.stage([await store.change(cluster, key, request=request, **more) for key in keys])
    return request


async def states(store: Store, request: Any) -> list[StagedState]:
    return [change.state for change in await store.staging.request(request)]


async def test_what_is_staged_is_pending_in_order(store: Store) -> None:
    cluster = await store.create()
    first, second = await stage(store, cluster, "a", "b"), await stage(store, cluster, "c")
    pending = (await store.staging.pending(cluster)).changes
    assert [(change.request, key_of(change)) for change in pending] == [(first, "a"), (first, "b"), (second, "c")]
    assert [change.sequence for change in pending] == sorted({change.sequence for change in pending})
    one = pending[0]
    assert (one.ciphertext, one.fingerprint, one.sealed_at, one.actor) == ("AgB=", "f1", NOON, ACTOR)
    assert await store.staging.request(second) == pending[2:]
    assert await store.staging.request(uuid4()) == []
    assert await store.staging.stage([]) == []
    wanted = await store.steps.read_wanted(cluster)
    assert wanted is not None
    assert wanted.secrets_pending == 3


async def test_a_template_is_kept_as_it_was_staged(store: Store) -> None:
    cluster = await store.create()
    wish = TemplateChange("kubernetes.io/tls", {"b": "2", "a": None}, {"note": "x"})
    staged = await store.staging.stage([replace(await store.change(cluster), template=wish)])
    other = await store.staging.stage([await store.change(cluster, "other")])
    assert [change.template for change in (await store.staging.pending(cluster)).changes] == [wish, None]
    assert await store.staging.request(staged[0].request) == staged
    assert await store.staging.request(other[0].request) == other


async def test_a_repeated_request_gets_what_is_there(store: Store) -> None:
    cluster = await store.create()
    change = await store.change(cluster)
    staged = await store.staging.stage([change])
    resealed = await store.change(cluster, request=change.request, ciphertext="other")
    assert await store.staging.stage([resealed]) == staged
    assert len((await store.staging.pending(cluster)).changes) == 1


async def test_a_request_that_is_there_is_told_of_and_not_refused(store: Store) -> None:
    """It was delivered twice: this delivery looked before the other one was staged."""
    cluster = await store.create()
    change = await store.change(cluster)
    await store.staging.stage([change])
    await store.staging.committed([change.request], "c1")
    for wish in (store.wishes.request_removal, store.wishes.request_deletion):
        await wish(cluster, actor=ACTOR)
        [there] = await store.staging.stage([change])
        assert (there.state, there.commit) == (StagedState.COMMITTED, "c1")


@pytest.mark.parametrize("creates", [True, False])
async def test_a_staged_secret_remembers_whether_it_brings_its_namespace(store: Store, *, creates: bool) -> None:
    cluster = await store.create()
    request = await stage(store, cluster, "a", creates_namespace=creates)
    assert [change.creates_namespace for change in (await store.staging.pending(cluster)).changes] == [creates]
    assert [change.creates_namespace for change in await store.staging.request(request)] == [creates]


async def test_a_request_is_never_torn(store: Store) -> None:
    cluster = await store.create()
    first, second = await stage(store, cluster, "a", "b", "c"), await stage(store, cluster, "d", "e")
    for limit, offered, more in ((1, {first}, True), (4, {first}, True), (5, {first, second}, False)):
        pending = await store.staging.pending(cluster, limit=limit)
        assert ({one.request for one in pending.changes}, pending.more) == (offered, more)


async def test_all_changes_of_a_request_belong_together(store: Store) -> None:
    one, two = await store.create("one"), await store.create("two")
    with pytest.raises(ValueError, match="too many"):
        await store.staging.stage([await store.change(one), await store.change(two)])


async def test_a_cluster_that_is_not_wanted_present_takes_no_secrets(store: Store) -> None:
    removed, deleted = await store.create("removed"), await store.create("deleted")
    changes = [await store.change(cluster) for cluster in (removed, deleted)]
    await store.wishes.request_removal(removed, actor=ACTOR)
    await store.wishes.request_deletion(deleted, actor=ACTOR)
    for change, code in zip(changes, ("removed", "deleting"), strict=True):
        with pytest.raises(Conflict) as refusal:
            await store.staging.stage([change])
        assert refusal.value.code == code
        assert await store.staging.request(change.request) == []


async def test_requests_that_come_together_share_transactions_and_nothing_else(store: Store) -> None:
    living, going = await store.create("living"), await store.create("going")
    changes = [await store.change(living, f"key-{number}") for number in range(20)]
    late = await store.change(going)
    twice = replace(changes[0], ciphertext="other")
    stale = replace(await store.change(living), generation=2)
    await store.wishes.request_deletion(going, actor=ACTOR)
    begun = 0

    def count(connection: Connection) -> None:
        nonlocal begun
        begun += 1

    event.listen(store.database._engine.sync_engine, "begin", count)
    asked = [store.staging.stage([change]) for change in (*changes, late, twice, stale)]
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    event.remove(store.database._engine.sync_engine, "begin", count)
    assert begun < 5
    *staged, refused, again, superseded = outcomes
    assert [kept[0].place for kept in staged if not isinstance(kept, BaseException)] == [c.place for c in changes]
    assert isinstance(refused, Conflict) and refused.code == "deleting"
    assert again == staged[0]
    assert isinstance(superseded, Superseded)
    assert [change.request for change in (await store.staging.pending(living)).changes] == [
        c.request for c in changes
    ]


async def test_a_caller_who_leaves_takes_nobody_along(store: Store) -> None:
    cluster = await store.create()
    asking = [asyncio.create_task(stage(store, cluster, key)) for key in "abcd"]
    await asyncio.sleep(0)
    asking[0].cancel()
    asking[2].cancel()
    done = await asyncio.gather(*asking, return_exceptions=True)
    assert [isinstance(outcome, asyncio.CancelledError) for outcome in done] == [True, False, True, False]
    there = {change.request for change in (await store.staging.pending(cluster)).changes}
    assert {done[1], done[3]} <= there
    assert await stage(store, cluster, "e") in {
        change.request for change in (await store.staging.pending(cluster)).changes
    }


async def test_whoever_waits_is_told_that_the_database_is_away(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = await store.create()
    changes = [await store.change(cluster, key) for key in "abc"]

    @asynccontextmanager
    async def away(**_: Any) -> AsyncIterator[None]:
        await asyncio.sleep(0.01)
        raise Waiting("The database is away.", code="database_unavailable")
        yield

    with monkeypatch.context() as patched:
        patched.setattr(store.database, "write", away)
        asking = asyncio.gather(*(store.staging.stage([each]) for each in changes), return_exceptions=True)
        assert [getattr(outcome, "code", outcome) for outcome in await asking] == ["database_unavailable"] * 3
    assert await store.staging.stage([changes[0]])


async def test_secrets_of_an_older_generation_are_refused(store: Store) -> None:
    cluster = await store.create()
    change = await store.change(cluster)
    await store.wishes.request_recreation(cluster, actor=ACTOR, new_hardware=True)
    with pytest.raises(Superseded):
        await store.staging.stage([change])
    with pytest.raises(NotFound):
        await store.staging.stage([StagedChange(**{**change.__dict__, "cluster": uuid4()})])


async def test_a_commit_is_recorded_once_and_the_ciphertext_goes(store: Store) -> None:
    cluster = await store.create()
    put, deleted = await stage(store, cluster, "a", "b"), await stage(store, cluster, "c", ciphertext=None)
    for commit in ("c0ffee", "later"):
        await store.staging.committed([put, deleted], commit)
    ended = [*await store.staging.request(put), *await store.staging.request(deleted)]
    assert {(one.state, one.commit, one.ciphertext) for one in ended} == {(StagedState.COMMITTED, "c0ffee", None)}
    assert (await store.staging.pending(cluster)).changes == []
    told = [event for event in await store.audit.timeline(cluster) if event.kind.startswith("secret")]
    assert [(event.kind, event.detail["key"], event.detail["commit"]) for event in told] == [
        ("secret.put", "a", "c0ffee"),
        ("secret.put", "b", "c0ffee"),
        ("secret.deleted", "c", "c0ffee"),
    ]
    assert {event.actor for event in told} == {ACTOR}
    async with store.database.read() as connection:
        assert set(await connection.scalars(select(staged_changes.c.ciphertext))) == {None}


async def test_the_workflow_finds_the_newest_commit_whoever_has_made_it(store: Store) -> None:
    cluster = await store.create()
    first, second, third = [await stage(store, cluster, *keys) for keys in ("ab", "c", "d")]
    assert (await wanted(store, cluster)).secrets_commit is None
    await store.staging.refuse(third, "no", "No.")
    for request, commit in ((first, "c1"), (second, "c2")):
        await store.staging.committed([request], commit)
        reading = await wanted(store, cluster)
        assert (reading.secrets_commit, reading.secrets_pending == 0) == (commit, request == second)
    assert reading.unread_news, "a gateway may die before it nudges"
    await store.staging.committed([second], "c3")
    assert (await wanted(store, cluster)).secrets_commit == "c2", "it was committed already"


async def test_an_older_change_is_never_committed_over_a_newer_one(store: Store) -> None:
    cluster = await store.create()
    older, mixed = await stage(store, cluster, "a"), await stage(store, cluster, "a", "b")
    newest = await stage(store, cluster, "a")
    await store.staging.committed([newest], "c0ffee")
    assert await states(store, older) == [StagedState.SUPERSEDED]
    assert await states(store, mixed) == [StagedState.SUPERSEDED, StagedState.STAGED]
    assert [(one.request, key_of(one)) for one in (await store.staging.pending(cluster)).changes] == [(mixed, "b")]
    await store.staging.committed([older, mixed], "decade")
    assert await states(store, older) == [StagedState.SUPERSEDED]
    assert await states(store, mixed) == [StagedState.SUPERSEDED, StagedState.COMMITTED]


async def test_what_another_worker_commits_meanwhile_is_not_recorded_by_what_was_read_before(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events are made before the transaction that records a commit: a newer value may have been committed by then."""
    cluster = await store.commissioned()
    older, newer = await store.change(cluster), await store.change(cluster)
    await store.staging.stage([older])
    await store.staging.stage([newer])
    prepare = secret_staging._facts_of

    async def overtaken(*facts: Any) -> Any:
        monkeypatch.setattr(secret_staging, "_facts_of", prepare)
        made = await prepare(*facts)
        await store.staging.committed([newer.request], "b" * 40)
        return made

    monkeypatch.setattr(secret_staging, "_facts_of", overtaken)
    await store.staging.committed([older.request], "a" * 40)
    states = [change.state for request in (older, newer) for change in await store.staging.request(request.request)]
    assert states == [StagedState.SUPERSEDED, StagedState.COMMITTED]
    told = [each.detail["commit"] for each in await store.audit.timeline(cluster) if each.kind == "secret.put"]
    assert told == ["b" * 40]


async def test_one_commit_may_hold_several_changes_of_a_key(store: Store) -> None:
    cluster = await store.create()
    first, second = await stage(store, cluster, "a"), await stage(store, cluster, "a")
    later = await stage(store, cluster, "a")
    await store.staging.committed([first, second], "c0ffee")
    assert await states(store, first) == await states(store, second) == [StagedState.COMMITTED]
    assert await states(store, later) == [StagedState.STAGED]


async def test_the_same_key_of_another_secret_or_cluster_is_another(store: Store) -> None:
    cluster, other = await store.create("one"), await store.create("two")
    kept = [await stage(store, cluster, "a", name="web"), await stage(store, other, "a")]
    await store.staging.committed([await stage(store, cluster, "a")], "c0ffee")
    for request in kept:
        assert await states(store, request) == [StagedState.STAGED]


async def test_what_a_commit_holds_is_committed_even_after_a_removal(store: Store) -> None:
    cluster = await store.create()
    request = await stage(store, cluster, "a")
    await store.wishes.request_removal(cluster, actor=ACTOR)
    assert await states(store, request) == [StagedState.REFUSED]
    await store.staging.committed([request], "c0ffee")
    [ended] = await store.staging.request(request)
    assert (ended.state, ended.commit, ended.refusal_code) == (StagedState.COMMITTED, "c0ffee", "")


async def test_what_no_commit_names_stays_refused(store: Store) -> None:
    cluster = await store.create()
    refused, waiting = await stage(store, cluster, "a"), await stage(store, cluster, "b")
    await store.staging.refuse(refused, "secret_too_large", "Too large.")
    await store.staging.committed([refused, waiting], "c1", unless_refused=True)
    assert (await states(store, refused), await states(store, waiting)) == (
        [StagedState.REFUSED],
        [StagedState.COMMITTED],
    )


async def test_a_refused_request_says_why(store: Store) -> None:
    cluster = await store.create()
    request = await stage(store, cluster, "a", "b")
    for _ in range(2):
        await store.staging.refuse(request, "too_large", "The Secret is over 1 MiB.")
    ended = await store.staging.request(request)
    assert {(one.state, one.refusal_code, one.refusal, one.ciphertext) for one in ended} == {
        (StagedState.REFUSED, "too_large", "The Secret is over 1 MiB.", None)
    }
    assert (await store.staging.pending(cluster)).changes == []
    assert (await store.kinds(cluster)).count("secret.refused") == 1
    await store.staging.committed([uuid4()], "nothing")
    await store.staging.committed([], "nothing")


async def test_one_request_staged_by_two_gateways_is_there_once(two: tuple[Store, Store]) -> None:
    cluster = await two[0].create()
    change = await two[0].change(cluster)
    answers = await asyncio.gather(*(two[number % 2].staging.stage([change]) for number in range(4)))
    assert all(answer == answers[0] for answer in answers)
    assert len((await two[0].staging.pending(cluster)).changes) == 1


async def test_the_front_of_a_backlog_is_whole_requests_within_the_limit(store: Store) -> None:
    cluster = await store.create()
    requests = [await stage(store, cluster, *(f"{n}-{key}" for key in range(10))) for n in range(30)]
    front = (await store.staging.pending(cluster, limit=25)).changes
    assert [change.request for change in front] == [request for request in requests[:2] for _ in range(10)]


async def labelled(store: Store, cluster: Any, name: str) -> Any:
    """One request that gives the Secret a label, and no value."""
    change = await store.change(cluster, None, ciphertext=None)
    template = TemplateChange(labels={name: "1"})
    await store.staging.stage([replace(change, template=template)])
    return change.request


async def test_a_label_is_committed_beside_values_and_other_labels(store: Store) -> None:
    cluster = await store.create()
    older, value = await labelled(store, cluster, "old"), await stage(store, cluster, "a")
    newer = await labelled(store, cluster, "new")
    await store.staging.committed([newer], "c" * 40)
    assert [await states(store, each) for each in (older, value, newer)] == [
        [StagedState.STAGED],
        [StagedState.STAGED],
        [StagedState.COMMITTED],
    ]
    await store.staging.committed([older, value], "d" * 40)
    events = await store.audit.timeline(cluster)
    told = [(event.kind, str(event.detail["commit"])[0]) for event in events if event.kind.startswith("secret.")]
    assert sorted(told) == [("secret.labelled", "c"), ("secret.labelled", "d"), ("secret.put", "d")]


async def test_the_commit_of_a_label_is_among_the_recorded_ones(store: Store) -> None:
    cluster = await store.create()
    await store.staging.committed([await labelled(store, cluster, "a")], "c" * 40)
    [recorded, *_] = await store.steps.recorded_commits(cluster, limit=10)
    assert (recorded.commit, recorded.secret, recorded.deletes) == ("c" * 40, None, False)


async def test_where_nothing_older_waits_no_key_of_a_commit_is_looked_for(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement for each of a thousand keys would hold up everybody else's writes on SQLite."""
    ran: list[int] = []

    async def counted(connection: Any, statement: Any, rows: Any) -> None:
        ran.append(len(rows))
        await execute_in_portions(connection, statement, rows)

    monkeypatch.setattr(secret_staging, "execute_in_portions", counted)
    cluster, other = await store.create(), await store.create("paint-shop")
    await stage(store, other, "a")
    alone, newer = await stage(store, cluster, "a", "b"), await stage(store, cluster, "a")
    await store.staging.committed([alone], "c1")
    assert ran == []
    assert await states(store, newer) == [StagedState.STAGED]
    older = await stage(store, cluster, "a", "b")
    newest = await stage(store, cluster, "b")
    await store.staging.committed([newest], "c2")
    assert ran == [1]
    assert await states(store, older) == [StagedState.STAGED, StagedState.SUPERSEDED]
