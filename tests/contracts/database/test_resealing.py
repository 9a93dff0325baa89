"""Re-sealings: what is asked for is remembered, answered once, and staged as one request."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from database_stores import ACTOR, NOON, Store, key_of
from sqlalchemy import text

from edgewright.adapters.database.secrets import resealing
from edgewright.domain.cluster import CertificateFacts
from edgewright.domain.kubernetes_names import SecretReference
from edgewright.errors import Conflict, NotFound, Superseded
from edgewright.ports.resealing import ResealedValue, Verdict
from edgewright.ports.secret_staging import StagedChange, StagedState

OLD = "0" * 64
A, B, C = SecretReference("default", "a"), SecretReference("default", "b"), SecretReference("other", "c")
SECRETS = (A, B, C)
DB = SecretReference("default", "db")


def facts(fingerprint: str, *, age: timedelta = timedelta(1)) -> CertificateFacts:
    return CertificateFacts(
        fingerprint=fingerprint, not_before=NOON - age, not_after=NOON + timedelta(3650), taken_at=NOON
    )


async def certify(store: Store, cluster: UUID, fingerprint: str, **more: Any) -> None:
    await store.edge_reports.write_status(
        cluster,
        {"kubeseal_cert": fingerprint},
        certificate=(facts(fingerprint, **more), "PEM"),
        certificate_problem=None,
        generation=None,
        actor="agent",
    )


async def sealed(store: Store, name: str = "press-shop") -> UUID:
    """A cluster whose edge has reported a certificate."""
    cluster = await store.create(name)
    await certify(store, cluster, "f2")
    return cluster


async def asked(store: Store, *secrets: SecretReference) -> UUID:
    cluster = await sealed(store)
    assert await store.resealings.begin(cluster, 1, secrets or SECRETS, actor=ACTOR, reason="theft")
    return cluster


def resealed(secret: SecretReference, *keys: str, unreadable: Sequence[str] = ()) -> Verdict:
    return Verdict(secret, {key: ResealedValue(OLD, f"new {key}") for key in keys}, unreadable)


async def take(store: Store, cluster: UUID, *verdicts: Verdict, fingerprint: str = "f2") -> Any:
    return await store.resealings.take(cluster, 1, fingerprint, verdicts)


async def pending(store: Store, cluster: UUID) -> Sequence[StagedChange]:
    return (await store.staging.pending(cluster)).changes


async def test_what_was_asked_for_is_wanted_until_it_is_answered(store: Store) -> None:
    cluster = await asked(store)
    row = await store.row(cluster)
    assert row.resealing is not None
    assert await store.resealings.wanted(cluster, limit=2) == [A, B]
    told = await take(store, cluster, resealed(A, "k"), Verdict(B))
    assert (told.id, told.secrets, told.left, told.ended_at) == (row.resealing, 3, 1, None)
    assert await store.resealings.wanted(cluster, limit=9) == [C]
    wanted = await store.steps.read_wanted(cluster)
    assert wanted is not None
    assert wanted.resealing == told
    assert (told.asked_by, told.reason, told.unreadable, told.waiting) == (ACTOR, "theft", (), ())


async def test_what_is_under_way_is_in_the_census_until_it_ends(timed: Store) -> None:
    cluster = await asked(timed)
    timed.clock.advance(minutes=20)
    counted: Any = await timed.census.count()
    assert (counted.resealings, counted.oldest_resealing) == (1, 1200.0)
    await take(timed, cluster, *map(Verdict, SECRETS))
    counted = await timed.census.count()
    assert (counted.resealings, counted.oldest_resealing) == (0, 0.0)


async def test_one_request_holds_all_that_was_gathered(store: Store) -> None:
    cluster = await asked(store)
    await take(store, cluster, resealed(A, "k", "l"))
    await take(store, cluster, resealed(B, "m"))
    assert await pending(store, cluster) == []
    told = await take(store, cluster, resealed(C, "n"))
    assert told.ended_at is not None
    staged = await pending(store, cluster)
    assert [(str(each.place), each.ciphertext) for each in staged] == [
        ("default/a/k", "new k"),
        ("default/a/l", "new l"),
        ("default/b/m", "new m"),
        ("other/c/n", "new n"),
    ]
    assert len({each.request for each in staged}) == 1
    assert {(each.replaces, each.fingerprint, each.actor) for each in staged} == {(OLD, "f2", ACTOR)}
    assert (await store.row(cluster)).resealing is None
    wanted = await store.steps.read_wanted(cluster)
    assert wanted is not None
    assert wanted.resealing is None


async def test_a_large_resealing_is_several_commits(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resealing, "MOST_SECRETS", 2)
    cluster = await asked(store)
    await take(store, cluster, resealed(A, "k"), resealed(B, "k"))
    assert [each.place.name for each in await pending(store, cluster)] == ["a", "b"]
    await take(store, cluster, resealed(C, "k"))
    assert len({each.request for each in await pending(store, cluster)}) == 2


async def test_a_secret_that_waits_holds_up_no_other(store: Store) -> None:
    cluster = await asked(store)
    late = Verdict(A, waits_for="The edge does not have it yet.")
    told = await take(store, cluster, late, resealed(B, "k"))
    assert told.waiting == ("default/a: The edge does not have it yet.",)
    assert await pending(store, cluster) == []
    assert await store.resealings.wanted(cluster, limit=1) == [C]
    told = await take(store, cluster, resealed(C, "k"))
    assert (told.left, told.ended_at) == (1, None)
    assert [each.place.name for each in await pending(store, cluster)] == ["b", "c"]
    told = await take(store, cluster, resealed(A, "k"))
    assert told.left == 0
    assert told.ended_at is not None
    assert [each.place.name for each in await pending(store, cluster)] == ["b", "c", "a"]


async def test_an_answer_counts_once_and_only_if_it_was_asked_for(store: Store) -> None:
    cluster = await asked(store, A, B)
    await take(store, cluster, resealed(A, "k"))
    await take(store, cluster, resealed(A, "another"), resealed(SecretReference("stranger", "x"), "k"))
    await take(store, cluster, Verdict(B))
    assert [(each.place.name, key_of(each)) for each in await pending(store, cluster)] == [("a", "k")]
    with pytest.raises(Conflict) as refusal:
        await take(store, cluster, resealed(A, "k"))
    assert refusal.value.code == "nothing_to_reseal"


async def test_what_nobody_can_open_is_to_be_entered_again_and_shown_until_then(store: Store) -> None:
    cluster = await asked(store, DB)
    told = await take(store, cluster, resealed(DB, "user", unreadable=["password"]))
    assert told.unreadable == ("default/db/password",)
    row = await store.row(cluster)
    assert list(row.must_reenter) == [DB.at("password")]
    assert [key_of(each) for each in await pending(store, cluster)] == ["user"]
    wanted = await store.steps.read_wanted(cluster)
    assert wanted is not None and wanted.resealing is not None
    assert wanted.resealing.unreadable == ("default/db/password",)
    assert {"reseal.asked", "reseal.unreadable", "reseal.ended"} <= set(await store.kinds(cluster))
    change = await store.change(cluster, "password")
    await store.staging.stage([change])
    await store.staging.committed([change.request], "c0ffee")
    wanted = await store.steps.read_wanted(cluster)
    assert wanted is not None
    assert (wanted.resealing, wanted.must_reenter) == (None, ())
    assert cluster in await store.directory.unfinished()


@pytest.mark.parametrize("is_first", [False, True])
async def test_what_is_entered_while_an_answer_is_judged_need_not_be_entered_again(
    store: Store, is_first: bool
) -> None:
    cluster = await asked(store, DB, A)
    if is_first:
        assert (await store.row(cluster)).secrets_commit == ""
    else:
        first = await store.change(cluster, "other")
        await store.staging.stage([first])
        await store.staging.committed([first.request], "a1")
    seen = (await store.row(cluster)).secrets_commit
    change = await store.change(cluster, "password")
    await store.staging.stage([change])
    await store.staging.committed([change.request], "a2")
    verdicts = [resealed(DB, unreadable=["password"]), resealed(A, "k")]
    told = await store.resealings.take(cluster, 1, "f2", verdicts, secrets_commit=seen)
    assert (told.unreadable, told.left, (await store.row(cluster)).must_reenter) == ((), 1, ())
    assert await store.resealings.wanted(cluster, limit=9) == [DB]
    again = await store.resealings.take(cluster, 1, "f2", verdicts[:1], secrets_commit="a2")
    assert (again.unreadable, again.left) == (("default/db/password",), 0)


async def test_values_for_another_certificate_are_refused(store: Store) -> None:
    cluster = await asked(store)
    with pytest.raises(Conflict) as refusal:
        await take(store, cluster, resealed(A, "k"), fingerprint="f1")
    assert refusal.value.code == "certificate_differs"
    assert (await store.resealings.wanted(cluster, limit=9)) == list(SECRETS)


async def test_values_are_committed_with_the_certificate_that_sealed_them(store: Store) -> None:
    cluster = await asked(store)
    await take(store, cluster, resealed(A, "k"))
    await certify(store, cluster, "f3")
    await take(store, cluster, resealed(B, "k"), Verdict(C), fingerprint="f3")
    assert [each.fingerprint for each in await pending(store, cluster)] == ["f2", "f3"]


async def test_asking_again_joins_what_is_under_way(store: Store) -> None:
    cluster = await asked(store, A)
    first = (await store.row(cluster)).resealing
    again = await store.resealings.begin(cluster, 1, SECRETS, actor="token:bob", reason="")
    assert again is not None
    assert (again.id, again.asked_by, again.secrets, again.left) == (first, ACTOR, 3, 3)
    assert (await store.kinds(cluster)).count("reseal.asked") == 2
    same = await store.resealings.begin(cluster, 1, [], actor="token:bob", reason="")
    assert same == again
    await take(store, cluster, resealed(A, "k"))
    stale_again = await store.resealings.begin(cluster, 1, [A, B], actor=ACTOR, reason="")
    assert stale_again is not None
    assert stale_again.left == 2, "what is gathered is not asked for again"


async def test_answered_secrets_that_are_stale_again_are_asked_for_again(store: Store) -> None:
    cluster = await asked(store, A, B)
    await take(store, cluster, Verdict(A))
    again = await store.resealings.begin(cluster, 1, [A], actor=ACTOR, reason="")
    assert again is not None
    assert (again.secrets, again.left) == (2, 2)


async def test_nothing_stale_is_nothing_asked(store: Store) -> None:
    cluster = await sealed(store)
    assert await store.resealings.begin(cluster, 1, [], actor=ACTOR, reason="") is None
    assert await store.resealings.wanted(cluster, limit=9) == []
    assert "reseal.asked" not in await store.kinds(cluster)


async def test_new_hardware_ends_it(store: Store) -> None:
    cluster = await asked(store)
    await take(store, cluster, resealed(A, "k"))
    await store.wishes.request_recreation(cluster, actor=ACTOR, new_hardware=True)
    assert (await store.row(cluster)).resealing is None
    assert await store.resealings.wanted(cluster, limit=9) == []
    with pytest.raises(Superseded):
        await take(store, cluster, resealed(B, "k"))
    with pytest.raises(Superseded):
        await store.resealings.begin(cluster, 1, SECRETS, actor=ACTOR, reason="")
    begun = await store.resealings.begin(cluster, 2, [B], actor=ACTOR, reason="")
    assert begun is not None
    assert begun.secrets == 1


async def test_a_cluster_that_goes_takes_nothing(store: Store) -> None:
    cluster = await asked(store)
    await store.wishes.request_deletion(cluster, actor=ACTOR)
    with pytest.raises(Conflict):
        await take(store, cluster, resealed(A, "k"))
    with pytest.raises(Conflict):
        await store.resealings.begin(cluster, 1, SECRETS, actor=ACTOR, reason="")
    with pytest.raises(NotFound):
        await store.resealings.begin(UUID(int=5), 1, SECRETS, actor=ACTOR, reason="")


@pytest.mark.parametrize("end", ["removed", "deleted"])
async def test_a_resealing_that_a_removal_overtakes_is_asked_for_again(store: Store, end: str) -> None:
    cluster = await asked(store, A, B)
    await take(store, cluster, resealed(A, "k"), Verdict(B))
    assert len(await pending(store, cluster)) == 1
    if end == "removed":
        await store.wishes.request_removal(cluster, actor=ACTOR)
        body = {"name": "press-shop", "namespace": "edgewright"}
        await store.wishes.write_configuration(cluster, body, actor=ACTOR)
    else:
        await store.wishes.request_deletion(cluster, actor=ACTOR)
        await store.wishes.undelete(cluster, actor=ACTOR)
    assert await pending(store, cluster) == []
    wanted = await store.steps.read_wanted(cluster)
    assert wanted is not None and wanted.resealing is not None
    assert (wanted.resealing.left, wanted.resealing.ended_at) == (1, None)
    assert await store.resealings.wanted(cluster, limit=9) == [A]
    assert (await store.kinds(cluster)).count("reseal.asked") == 2
    await take(store, cluster, resealed(A, "k"))
    assert [key_of(change) for change in await pending(store, cluster)] == ["k"]


async def test_a_superseded_key_is_due_when_it_is_90_days_old(timed: Store) -> None:
    cluster = await timed.create()
    await certify(timed, cluster, "f1", age=timedelta(20))
    assert await timed.resealings.due() == []
    await certify(timed, cluster, "f2")
    await certify(timed, cluster, "f3")
    timed.clock.advance(days=69)
    assert await timed.resealings.due() == []
    timed.clock.advance(days=1)
    assert await timed.resealings.due() == [cluster]
    await timed.resealings.begin(cluster, 1, [], actor="centre", reason="")
    assert await timed.resealings.due() == [], "whatever is stale is asked for, or nothing is"
    timed.clock.advance(days=300)
    assert await timed.resealings.due() == []
    await certify(timed, cluster, "f4")
    assert await timed.resealings.due() == [cluster]
    await timed.wishes.request_removal(cluster, actor=ACTOR)
    assert await timed.resealings.due() == []


async def test_a_resealed_value_gives_way_alone(store: Store) -> None:
    cluster = await asked(store, DB)
    await take(store, cluster, resealed(DB, "a", "b"))
    first, second = await pending(store, cluster)
    await store.staging.give_way([first])
    assert await pending(store, cluster) == [second]
    put = await store.change(cluster, "c")
    [staged] = await store.staging.stage([put])
    await store.staging.give_way([staged])
    assert len(await pending(store, cluster)) == 2, "only what replaces something gives way"


async def test_a_committed_resealing_is_one_line_and_takes_no_other_change_along(store: Store) -> None:
    cluster = await asked(store, DB)
    [put] = await store.staging.stage([await store.change(cluster, "a")])
    await take(store, cluster, resealed(DB, "a", "b"))
    staged = [each for each in await pending(store, cluster) if each.replaces]
    for _ in range(2):
        await store.staging.committed([staged[0].request], "c0ffee")
    [line] = [event for event in await store.audit.timeline(cluster) if event.kind == "secret.resealed"]
    assert line.detail == {"values": 2, "fingerprint": "f2", "commit": "c0ffee"}
    [waiting] = await pending(store, cluster)
    assert waiting == put
    [done, _] = await store.staging.request(staged[0].request)
    assert (done.state, done.ciphertext) == (StagedState.COMMITTED, None)


async def stored(store: Store) -> list[str]:
    """The texts that rows have of Secrets."""
    async with store.database.read() as connection:
        return list(await connection.scalars(text("SELECT secret FROM resealing_secrets ORDER BY secret")))


async def test_a_secret_is_stored_as_its_text(store: Store) -> None:
    await asked(store)
    assert await stored(store) == ["default/a", "default/b", "other/c"]


@pytest.mark.parametrize("strange", ["alone", "a/b/c"])
async def test_a_text_that_is_no_secret_is_asked_for_as_it_is(store: Store, strange: str) -> None:
    """No version writes one, but somebody's hand could: it holds up no other Secret."""
    cluster = await asked(store, A, B)
    async with store.database.write() as connection:
        put = text("UPDATE resealing_secrets SET secret = :strange WHERE secret = 'default/a'")
        await connection.execute(put, {"strange": strange})
    told = await take(store, cluster, resealed(B, "k", unreadable=["password"]))
    assert (told.left, told.unreadable) == (1, ("default/b/password",))
    assert [str(secret) for secret in await store.resealings.wanted(cluster, limit=9)] == [strange]
    assert await stored(store) == sorted([strange, "default/b"])
