"""How an edge gets in: tokens, registration, acceptance."""

import asyncio
import re
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from database_stores import ACTOR, NOON, Store, code_of, digest, state_of, states

from edgewright.domain.check_in import CheckIn
from edgewright.domain.cluster import (
    Acceptance,
    AcceptancePolicy,
    ClusterSettings,
    CredentialState,
    Desired,
    Fence,
    Order,
    Phase,
    Role,
    StepName,
    TokenState,
    Workloads,
)
from edgewright.domain.edge_status import read_edge_status
from edgewright.domain.kubernetes_names import SecretReference
from edgewright.domain.projection import Projection
from edgewright.errors import Conflict, Forbidden
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.edge_access import EdgeOrders, Holder, Registration

MANUAL = ClusterSettings(accept=AcceptancePolicy.MANUAL)


# --- tokens ------------------------------------------------------------------------------------------------


async def test_a_token_is_issued_for_the_present_generation(timed: Store) -> None:
    cluster = await timed.commissioned()
    expires_at = await timed.edge_access.issue_token(
        cluster, token_id="t1", secret_sha256=digest("t1"), expires_in=timedelta(hours=1), actor=ACTOR
    )
    token = await timed.edge_access.token("t1")
    assert token is not None
    assert (token.cluster, token.generation, token.state) == (cluster, 1, TokenState.ISSUED)
    assert (token.expires_at, token.secret_sha256) == (NOON + timedelta(hours=1), digest("t1"))
    assert expires_at == token.expires_at
    assert await timed.edge_access.token("unknown") is None
    assert (await timed.kinds(cluster))[-1] == "token.issued"


async def test_a_newer_token_ends_earlier_unspent_ones(store: Store) -> None:
    cluster = await store.commissioned()
    await store.token(cluster, "t1")
    await store.token(cluster, "t2")
    assert (await state_of(store, "t1"), await state_of(store, "t2")) == (TokenState.REPLACED, TokenState.ISSUED)
    assert await code_of(store.register("t1")) == "token_replaced"


async def test_a_token_is_issued_only_for_a_cluster_that_is_ready(store: Store) -> None:
    cluster = await store.create()
    assert await code_of(store.token(cluster)) == "not_ready"
    assert await code_of(store.token(uuid4())) == "cluster_unknown"
    await store.publish(cluster, Phase.AWAITING_BOOTSTRAP, ready=True)
    await store.wishes.request_removal(cluster, actor=ACTOR)
    assert await code_of(store.token(cluster)) == "removed"
    await store.wishes.request_deletion(cluster, actor=ACTOR)
    assert await code_of(store.token(cluster)) == "deleting"


async def test_who_has_read_that_a_cluster_is_ready_gets_a_token(store: Store) -> None:
    """The setup status says so a moment before the workflow publishes it."""
    cluster = await store.create()
    row = await store.row(cluster)
    fence = Fence(cluster=cluster, generation=row.generation, change=row.change)
    await store.steps.publish_setup_status(fence, {"ready": True, "commissioning": row.commissioning - 1})
    assert await code_of(store.token(cluster)) == "not_ready"
    await store.steps.publish_setup_status(fence, {"ready": True, "commissioning": row.commissioning})
    assert await store.token(cluster) == "t1"


async def test_a_token_expires_unless_it_was_spent(timed: Store) -> None:
    late, spent = await timed.commissioned("late"), await timed.commissioned("spent")
    manual = await timed.commissioned("manual", settings=MANUAL)
    await timed.token(late, "late")
    await timed.token(spent, "spent")
    await timed.token(manual, "waiting")
    await timed.register("spent", uid="uid-spent")
    await timed.register("waiting", uid="uid-waiting")
    await timed.edge_access.record_use((await timed.credential(spent, Role.AGENT)).id)
    timed.clock.advance(hours=1)
    assert await state_of(timed, "late") is TokenState.EXPIRED
    assert await code_of(timed.register("late")) == "token_expired"
    assert await timed.edge_access.expire_tokens() == 2
    assert await timed.edge_access.expire_tokens() == 0
    assert [await state_of(timed, one) for one in ("late", "spent", "waiting")] == [
        TokenState.EXPIRED,
        TokenState.SPENT,
        TokenState.EXPIRED,
    ]


# --- registration ------------------------------------------------------------------------------------------


async def test_registration_binds_the_token_and_lets_the_cluster_in(store: Store) -> None:
    cluster = await store.commissioned()
    before = await store.row(cluster)
    answer = await store.register(await store.token(cluster))
    assert (answer.cluster, answer.generation, answer.acceptance) == (cluster, 1, Acceptance.ACCEPTED)
    assert re.fullmatch(r"[0-9A-HJKMNP-TV-Z]{4}-[0-9A-HJKMNP-TV-Z]{4}", answer.short_code)
    token = await store.edge_access.token("t1")
    assert token is not None
    assert (token.state, token.bound_uid) == (TokenState.BOUND, "uid-1")
    held = await store.edge_access.credentials(cluster)
    assert {(one.role, one.secret_sha256) for one in held} == {
        (Role.FLUX, digest("flux-first")),
        (Role.AGENT, digest("agent-first")),
    }
    assert {(one.state, one.proven_at, one.generation) for one in held} == {(CredentialState.ACTIVE, None, 1)}
    row = await store.row(cluster)
    assert (row.acceptance, row.short_code) == (Acceptance.ACCEPTED, answer.short_code)
    assert row.change == before.change + 1
    assert (await store.kinds(cluster))[-1] == "edge.registered"


async def as_let_in(store: Store, cluster: UUID) -> ClusterRow:
    """A row as whoever is let in gets it: without what only some routes need."""
    return replace(await store.row(cluster), edge_status=None, projection=None, can_answer=None)


async def test_a_cluster_is_read_with_its_credentials(store: Store) -> None:
    cluster = await store.commissioned()
    assert await store.edge_access.with_credentials(cluster) == (await as_let_in(store, cluster), [])
    await store.register(await store.token(cluster))
    held = await store.edge_access.credentials(cluster)
    assert len(held) == 2
    assert await store.edge_access.with_credentials(cluster) == (await as_let_in(store, cluster), held)
    await store.edge_access.revoke(cluster, actor="token:test")
    assert await store.edge_access.with_credentials(cluster) == (await as_let_in(store, cluster), [])
    assert await store.edge_access.with_credentials(uuid4()) is None


async def test_what_a_heartbeat_is_let_in_by_does_not_hold_the_status(store: Store) -> None:
    cluster = await store.commissioned()
    await store.register(await store.token(cluster))
    await store.edge_reports.write_status(
        cluster, {"hosts": []}, certificate=None, certificate_problem=None, generation=1, actor="agent"
    )
    known, whole = await store.edge_access.with_credentials(cluster), await store.row(cluster)
    assert known is not None
    assert whole.edge_status == read_edge_status({"hosts": []})
    assert known[0] == await as_let_in(store, cluster)
    assert whole.status_etag is not None


async def test_what_an_edge_is_asked_to_do_is_known_without_the_rest_of_the_projection(store: Store) -> None:
    cluster = await store.create("press-shop")
    assert (await let_in(store, cluster)).order is Order.NONE, "its workflow has published nothing yet"
    ordered = Projection(sequence=9, phase=Phase.DETACHING, ready=True, order=Order.DETACH, desired_revision="a" * 40)
    await store.steps.project(cluster, ordered, [])
    row = await let_in(store, cluster)
    assert (row.projection, row.order, row.desired_revision) == (None, Order.DETACH, "a" * 40)


async def let_in(store: Store, cluster: UUID) -> ClusterRow:
    known = await store.edge_access.with_credentials(cluster)
    assert known is not None
    return known[0]


async def test_what_credentials_are_worth_is_read_with_them(store: Store) -> None:
    cluster, other = await store.commissioned("line-1"), await store.commissioned("line-2")
    assert await store.edge_access.holder(cluster) is None
    await store.register(await store.token(cluster), uid="uid-1")
    held = await store.edge_access.credentials(cluster)
    assert await store.edge_access.holder(cluster) == Holder("line-1", 1, Acceptance.ACCEPTED, held)
    assert await store.edge_access.holder(other) is None
    await store.edge_access.revoke(cluster, actor="token:test")
    assert await store.edge_access.holder(cluster) is None
    assert await store.edge_access.holder(uuid4()) is None


async def test_what_an_agent_is_told_by_is_read_with_its_credentials(store: Store) -> None:
    calls = CheckIn(windows=("Mon-Fri 06:00-07:00",), time_zone="Europe/Berlin")
    settings = ClusterSettings(accept=AcceptancePolicy.MANUAL, lease_seconds=60, check_in=calls)
    cluster, other = await store.commissioned("line-1", settings=settings), await store.commissioned("line-2")
    assert await store.edge_access.orders(cluster) is None
    await store.registered(cluster)
    await store.registered(other, uid="uid-2", token_id="t2")
    held, row = await store.edge_access.credentials(cluster), await store.row(cluster)
    assert await store.edge_access.orders(cluster) == EdgeOrders(
        name="line-1",
        generation=1,
        acceptance=Acceptance.PENDING,
        credentials=held,
        desired=Desired.PRESENT,
        order=Order.NONE,
        desired_revision=row.desired_revision,
        lease_seconds=60,
        check_in=calls,
        status_etag=None,
        resealing=None,
        workloads=Workloads.REMOVE,
        purge=False,
        closed=False,
    )
    await store.edge_access.revoke(cluster, actor="token:test")
    assert await store.edge_access.orders(cluster) is None
    assert await store.edge_access.orders(uuid4()) is None


async def test_what_an_agent_is_told_by_follows_its_cluster(store: Store) -> None:
    cluster, kept = await store.joined("line-1"), await store.joined("line-2")
    await store.edge_reports.write_status(
        cluster, {"hosts": []}, certificate=None, certificate_problem=None, generation=1, actor="agent"
    )
    assert await store.resealings.begin(cluster, 1, [SecretReference("default", "a")], actor=ACTOR, reason="theft")
    orders, row = await store.edge_access.orders(cluster), await store.row(cluster)
    assert orders is not None
    assert (orders.lease_seconds, orders.check_in) == (row.settings.lease_seconds, None)
    assert orders.status_etag == row.status_etag is not None
    assert orders.resealing == row.resealing is not None
    assert orders.credentials == await store.edge_access.credentials(cluster)
    await store.wishes.request_deletion(cluster, actor=ACTOR, purge=True)
    await store.wishes.request_deletion(kept, actor=ACTOR, workloads=Workloads.KEEP)
    await store.publish(cluster, Phase.DETACHING, ready=True, order=Order.DETACH, desired_revision="a" * 40)
    orders, of_kept = await store.edge_access.orders(cluster), await store.edge_access.orders(kept)
    assert orders is not None and of_kept is not None
    assert (orders.desired, orders.order, orders.desired_revision) == (Desired.DELETED, Order.DETACH, "a" * 40)
    assert (orders.workloads, orders.purge, orders.closed) == (Workloads.REMOVE, True, False)
    assert (of_kept.workloads, of_kept.purge) == (Workloads.KEEP, False)
    await store.edge_access.retire(await store.fence(cluster), said_goodbye=False)
    await store.steps.remove_central_entries(await store.fence(cluster), StepName.REMOVE_SETUP_STATUS)
    orders = await store.edge_access.orders(cluster)
    assert orders is not None and orders.closed


async def test_a_repeated_registration_gets_the_same_answer(store: Store) -> None:
    cluster = await store.commissioned(settings=MANUAL)
    await store.token(cluster)
    first = await store.register("t1")
    row, held = await store.row(cluster), await store.edge_access.credentials(cluster)
    assert await store.register("t1") == first
    assert await store.row(cluster) == row
    assert await store.edge_access.credentials(cluster) == held


async def test_new_secrets_of_the_same_cluster_replace_unproven_ones(store: Store) -> None:
    cluster = await store.commissioned()
    await store.token(cluster)
    first = await store.register("t1", secrets="first")
    second = await store.register("t1", secrets="second")
    assert second.short_code != first.short_code
    assert {one.secret_sha256 for one in await store.edge_access.credentials(cluster)} == {
        digest("flux-second"),
        digest("agent-second"),
    }


async def test_a_bound_token_is_no_use_elsewhere(store: Store) -> None:
    cluster = await store.commissioned()
    await store.token(cluster)
    await store.register("t1", uid="uid-1")
    assert await code_of(store.register("t1", uid="uid-2")) == "token_bound_elsewhere"
    assert {one.secret_sha256 for one in await store.edge_access.credentials(cluster)} == {
        digest("flux-first"),
        digest("agent-first"),
    }


async def test_a_wrong_token_is_refused(store: Store) -> None:
    cluster = await store.commissioned()
    await store.token(cluster)
    assert await code_of(store.register("t2")) == "token_wrong"
    forged = store.edge_access.register(
        token_id="t1",
        secret_sha256=digest("guess"),
        kube_system_uid="uid-1",
        kubernetes_version="v1",
        flux_sha256=digest("f"),
        agent_sha256=digest("a"),
    )
    assert await code_of(forged) == "token_wrong"
    assert await state_of(store, "t1") is TokenState.ISSUED


async def test_a_spent_token_is_refused(store: Store) -> None:
    cluster = await store.commissioned()
    await store.registered(cluster)
    assert await state_of(store, "t1") is TokenState.BOUND
    await store.edge_access.record_use((await store.credential(cluster, Role.FLUX)).id)
    assert await state_of(store, "t1") is TokenState.SPENT
    assert await code_of(store.register("t1", secrets="second")) == "token_spent"
    assert await code_of(store.register("t1", uid="uid-2")) == "token_spent"


async def test_a_registration_may_be_repeated_whatever_has_become_of_its_token(timed: Store) -> None:
    """The answer was lost, or the line was pasted twice: a refusal would make the edge undo what it lives on."""
    spent, replaced, expired = [await timed.commissioned(name) for name in ("spent", "replaced", "expired")]
    first = {}
    for cluster, name in ((spent, "spent"), (replaced, "replaced"), (expired, "expired")):
        await timed.token(cluster, name)
        first[name] = await timed.register(name, uid=f"uid-{name}")
    await timed.edge_access.record_use((await timed.credential(spent, Role.AGENT)).id)
    await timed.token(replaced, "newer")
    timed.clock.advance(hours=2)
    before = [await timed.row(cluster) for cluster in (spent, replaced, expired)]
    for name, answer in first.items():
        assert await timed.register(name, uid=f"uid-{name}") == answer
    assert [await timed.row(cluster) for cluster in (spent, replaced, expired)] == before
    assert (await timed.kinds(spent)).count("edge.registered") == 1


async def test_a_registration_that_has_renewed_one_credential_may_be_repeated(store: Store) -> None:
    """One of the edge's Secrets was lost, a fresh line has made it anew, and its answer was lost, too."""
    cluster = await store.joined("press-shop")
    uid, kept = "uid-of-press-shop", digest("agent-first")
    await store.token(cluster, "fresh")
    asked: dict[str, Any] = {"token_id": "fresh", "secret_sha256": digest("fresh"), "kube_system_uid": uid}
    asked |= {"flux_sha256": digest("flux-second"), "agent_sha256": kept, "kubernetes_version": "v1.31.4"}
    first = await store.edge_access.register(**asked)
    await store.edge_access.record_use((await store.credential(cluster, Role.FLUX, "flux-second")).id)
    assert await state_of(store, "fresh") is TokenState.SPENT
    assert await store.edge_access.register(**asked) == first


async def test_a_registration_that_was_followed_or_revoked_is_not_repeated(store: Store) -> None:
    rotated, revoked = await store.commissioned("rotated"), await store.commissioned("revoked")
    for cluster, name in ((rotated, "rotated"), (revoked, "revoked")):
        await store.registered(cluster, uid=f"uid-{name}", token_id=name)
        await store.edge_access.record_use((await store.credential(cluster, Role.AGENT)).id)
    await store.edge_access.add_rotated(rotated, Role.AGENT, digest("next"), actor="agent")
    await store.edge_access.record_use((await store.credential(rotated, Role.AGENT, "next")).id)
    await store.edge_access.revoke(revoked, actor=ACTOR)
    for name in ("rotated", "revoked"):
        assert await code_of(store.register(name, uid=f"uid-{name}")) == "token_spent"


async def test_registration_ends_with_the_wish_for_the_cluster(store: Store) -> None:
    removed, deleted, closed = [await store.commissioned(name) for name in ("removed", "deleted", "closed")]
    for cluster, token_id in ((removed, "r"), (deleted, "d"), (closed, "c")):
        await store.token(cluster, token_id)
    await store.wishes.request_removal(removed, actor=ACTOR)
    for cluster in (deleted, closed):
        await store.wishes.request_deletion(cluster, actor=ACTOR)
    await store.steps.remove_central_entries(await store.fence(closed), StepName.REMOVE_SETUP_STATUS)
    assert await code_of(store.register("r")) == "removed"
    assert await code_of(store.register("d")) == "deleting"
    assert await code_of(store.register("c")) == "deleting"


async def test_a_kubernetes_cluster_is_active_as_one_cluster_only(store: Store) -> None:
    one, two = await store.commissioned("one"), await store.commissioned("two")
    await store.registered(one, uid="uid-1", token_id="t-one")
    await store.token(two, "t-two")
    with pytest.raises(Conflict) as refusal:
        await store.register("t-two", uid="uid-1")
    assert refusal.value.code == "duplicate_identity"
    assert "one" in refusal.value.detail
    assert await state_of(store, "t-two") is TokenState.ISSUED
    await store.wishes.request_deletion(one, actor=ACTOR)
    await store.register("t-two", uid="uid-1")


async def test_of_two_clusters_with_one_token_one_gets_in(two: tuple[Store, Store]) -> None:
    cluster = await two[0].commissioned()
    await two[0].token(cluster)
    outcomes = await asyncio.gather(
        *(two[number % 2].register("t1", uid=f"uid-{number}", secrets=str(number)) for number in range(6)),
        return_exceptions=True,
    )
    won = [number for number, outcome in enumerate(outcomes) if isinstance(outcome, Registration)]
    assert len(won) == 1
    lost = [outcome for outcome in outcomes if not isinstance(outcome, Registration)]
    assert all(isinstance(one, Forbidden) and one.code == "token_bound_elsewhere" for one in lost)
    token = await two[0].edge_access.token("t1")
    assert token is not None
    assert token.bound_uid == f"uid-{won[0]}"
    assert {one.secret_sha256 for one in await two[0].edge_access.credentials(cluster)} == {
        digest(f"flux-{won[0]}"),
        digest(f"agent-{won[0]}"),
    }


# --- acceptance --------------------------------------------------------------------------------------------


async def test_under_the_manual_policy_a_person_decides(store: Store) -> None:
    cluster = await store.commissioned(settings=MANUAL)
    assert await code_of(store.edge_access.answer(cluster, accepted=True, actor=ACTOR)) == "nothing_to_accept"
    answer = await store.register(await store.token(cluster))
    assert answer.acceptance is Acceptance.PENDING
    assert await states(store, cluster) == [CredentialState.PENDING, CredentialState.PENDING]
    assert await store.edge_access.answer(cluster, accepted=True, actor=ACTOR) is Acceptance.ACCEPTED
    assert await states(store, cluster) == [CredentialState.ACTIVE, CredentialState.ACTIVE]
    row, kinds = await store.row(cluster), await store.kinds(cluster)
    assert await store.edge_access.answer(cluster, accepted=True, actor=ACTOR) is Acceptance.ACCEPTED
    assert (await store.row(cluster), await store.kinds(cluster)) == (row, kinds)
    assert kinds[-1] == "edge.accepted"


async def test_using_a_credential_does_not_accept_it(store: Store) -> None:
    cluster = await store.commissioned(settings=MANUAL)
    await store.registered(cluster)
    agent = await store.credential(cluster, Role.AGENT)
    await store.edge_access.record_use(agent.id)
    assert await states(store, cluster) == [CredentialState.PENDING, CredentialState.PENDING]
    assert (await store.row(cluster)).acceptance is Acceptance.PENDING


async def test_rejection_revokes_and_frees_the_binding(store: Store) -> None:
    cluster, other = await store.commissioned(settings=MANUAL), await store.commissioned("other")
    await store.registered(cluster, uid="uid-1")
    assert await store.edge_access.answer(cluster, accepted=False, actor=ACTOR) is Acceptance.REJECTED
    assert await store.edge_access.credentials(cluster) == []
    assert await state_of(store, "t1") is TokenState.REPLACED
    assert (await store.row(cluster)).short_code is None
    assert await store.edge_access.answer(cluster, accepted=False, actor=ACTOR) is Acceptance.REJECTED
    assert await code_of(store.edge_access.answer(cluster, accepted=True, actor=ACTOR)) == "nothing_to_accept"
    await store.registered(other, uid="uid-1", token_id="t-other")
    answer = await store.register(await store.token(cluster, "t2"), uid="uid-2", secrets="second")
    assert answer.acceptance is Acceptance.PENDING


async def test_of_two_acceptances_one_is_told(two: tuple[Store, Store]) -> None:
    cluster = await two[0].commissioned(settings=MANUAL)
    await two[0].registered(cluster)
    answers = await asyncio.gather(
        *(store.edge_access.answer(cluster, accepted=True, actor=ACTOR) for store in two * 2)
    )
    assert set(answers) == {Acceptance.ACCEPTED}
    assert (await two[0].kinds(cluster)).count("edge.accepted") == 1


async def test_an_accepted_cluster_that_registers_again_stays_accepted(store: Store) -> None:
    cluster = await store.commissioned(settings=MANUAL)
    await store.registered(cluster, uid="uid-1")
    await store.edge_access.answer(cluster, accepted=True, actor=ACTOR)
    same = await store.register(await store.token(cluster, "t2"), uid="uid-1")
    assert same.acceptance is Acceptance.ACCEPTED
    other = await store.register(await store.token(cluster, "t3"), uid="uid-2", secrets="other")
    assert other.acceptance is Acceptance.PENDING
    assert other.short_code != same.short_code


async def test_a_thief_who_claims_the_same_uid_is_not_accepted_in_place_of_the_edge(store: Store) -> None:
    """Before or after the answer: what a person accepts is what stood under the code that was compared."""
    cluster = await store.commissioned(settings=MANUAL)
    token = await store.token(cluster)
    edge = await store.register(token, uid="uid-1", secrets="edge")
    thief = await store.register(token, uid="uid-1", secrets="thief")
    assert thief.short_code != edge.short_code
    assert (await store.row(cluster)).short_code == thief.short_code
    edge = await store.register(token, uid="uid-1", secrets="edge")
    await store.edge_access.answer(cluster, accepted=True, actor=ACTOR)
    again = await store.register(token, uid="uid-1", secrets="thief")
    assert again.acceptance is Acceptance.PENDING
    assert CredentialState.ACTIVE not in await states(store, cluster)
