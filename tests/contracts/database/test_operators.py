"""Tokens of operators, and what idempotency keys remember."""

import asyncio
from datetime import timedelta

import pytest
from database_stores import ACTOR, NOON, Store, digest

from edgewright.domain.event_room import BURST
from edgewright.errors import Conflict, Invalid
from edgewright.ports.operators import FirstAnswer, OperatorToken, Permission


def token(token_id: str, name: str, **more: object) -> OperatorToken:
    values = {"permissions": frozenset({Permission.READ, Permission.SECRETS}), "created_at": NOON, "expires_at": None}
    return OperatorToken(id=token_id, name=name, secret_sha256=digest(token_id), **(values | more))  # type: ignore[arg-type] # keyword tests


async def test_a_token_is_found_by_its_id(timed: Store) -> None:
    stored = token("t1", "ci", expires_at=NOON + timedelta(days=1))
    await timed.operators.add(stored, actor=ACTOR)
    assert await timed.operators.find("t1") == stored
    assert await timed.operators.find("t2") is None


async def test_living_tokens_are_listed_by_name(timed: Store) -> None:
    for one in (token("t1", "zoe"), token("t2", "ci"), token("t3", "old", expires_at=NOON)):
        await timed.operators.add(one, actor=ACTOR)
    assert [one.name for one in await timed.operators.list()] == ["ci", "zoe"]


async def test_an_expired_token_is_none_and_its_name_is_free(timed: Store) -> None:
    await timed.operators.add(token("t1", "ci", expires_at=NOON + timedelta(hours=1)), actor=ACTOR)
    timed.clock.advance(hours=1)
    assert await timed.operators.find("t1") is None
    await timed.operators.add(token("t2", "ci"), actor=ACTOR)
    assert [one.id for one in await timed.operators.list()] == ["t2"]


async def test_two_living_tokens_never_share_a_name(two: tuple[Store, Store]) -> None:
    outcomes = await asyncio.gather(
        *(two[number % 2].operators.add(token(f"t{number}", "ci"), actor=ACTOR) for number in range(4)),
        return_exceptions=True,
    )
    refused = [one for one in outcomes if one is not None]
    assert len(refused) == 3
    assert all(isinstance(one, Conflict) and one.code == "token_name_taken" for one in refused)


async def test_a_revoked_token_is_gone_for_every_gateway(two: tuple[Store, Store]) -> None:
    await two[0].operators.add(token("t1", "ci"), actor=ACTOR)
    assert await two[1].operators.find("t1") is not None
    assert await two[0].operators.revoke("t1", actor=ACTOR)
    assert await two[1].operators.find("t1") is None
    assert not await two[1].operators.revoke("t1", actor=ACTOR)
    await two[0].operators.add(token("t2", "ci"), actor=ACTOR)
    told = [event.kind for event in await two[0].audit.events(after=0) if event.kind.startswith("operator_token")]
    assert told == ["operator_token.created", "operator_token.revoked", "operator_token.created"]


async def test_sessions_of_an_edge_are_told_as_far_as_its_timeline_has_room(timed: Store) -> None:
    cluster = await timed.create("press-shop")
    opened = 70
    for number in range(opened):
        await timed.operators.add(token(f"t{number}", f"edge-session:{number}"), actor="agent", edge=cluster)
    told = [each for each in await timed.audit.timeline(cluster) if each.kind == "operator_token.created"]
    assert 0 < len(told) <= BURST
    assert (told[0].actor, told[0].detail["token"]) == ("agent", "t0")
    assert (await timed.operators.find(f"t{opened - 1}")) is not None
    timed.clock.advance(hours=1)
    await timed.operators.add(token("later", "edge-session:later"), actor="agent", edge=cluster)
    *_, omitted, last = await timed.audit.timeline(cluster)
    assert (omitted.kind, omitted.detail) == ("edge.events_omitted", {"omitted": opened - len(told)})
    assert (last.kind, last.detail["token"]) == ("operator_token.created", "later")


async def test_the_first_claim_is_the_callers(timed: Store) -> None:
    assert await timed.idempotency.claim("POST /v1/cluster", "k", "d") is None
    assert await timed.idempotency.claim("POST /v1/cluster", "k", "d") == FirstAnswer("d", 0, None, {})
    assert await timed.idempotency.claim("another scope", "k", "other") is None
    await timed.idempotency.settle("POST /v1/cluster", "k", 201, {"uuid": "u"}, {"Location": "/v1/cluster/u"})
    remembered = FirstAnswer("d", 201, {"uuid": "u"}, {"Location": "/v1/cluster/u"})
    assert await timed.idempotency.claim("POST /v1/cluster", "k", "d") == remembered
    await timed.idempotency.settle("POST /v1/cluster", "k", 500, None, {})
    await timed.idempotency.release("POST /v1/cluster", "k")
    assert await timed.idempotency.claim("POST /v1/cluster", "k", "d") == remembered


async def test_a_key_belongs_to_one_request(timed: Store) -> None:
    await timed.idempotency.claim("s", "k", "d")
    with pytest.raises(Invalid) as refusal:
        await timed.idempotency.claim("s", "k", "other")
    assert refusal.value.code == "idempotency_key_reused"


async def test_what_the_dead_have_claimed_can_be_claimed_anew_and_what_they_settled_is_remembered(
    timed: Store,
) -> None:
    await timed.idempotency.claim("s", "settled", "d")
    await timed.idempotency.settle("s", "settled", 201, {"name": "a"}, {})
    await timed.idempotency.claim("s", "orphaned", "d")
    await timed.idempotency.orphan()
    assert await timed.idempotency.claim("s", "settled", "d") == FirstAnswer("d", 201, {"name": "a"}, {})
    with pytest.raises(Invalid):
        await timed.idempotency.claim("s", "orphaned", "other")
    assert await timed.idempotency.claim("s", "orphaned", "d") is None
    assert await timed.idempotency.claim("s", "orphaned", "d") == FirstAnswer("d", 0, None, {})


async def test_a_released_key_can_be_claimed_anew(timed: Store) -> None:
    await timed.idempotency.claim("s", "k", "d")
    await timed.idempotency.release("s", "k")
    assert await timed.idempotency.claim("s", "k", "other") is None


async def test_a_claim_of_a_gateway_that_died_can_be_taken_over_once(timed: Store) -> None:
    await timed.idempotency.claim("s", "k", "d")
    timed.clock.advance(seconds=60)
    assert await timed.idempotency.claim("s", "k", "d") is not None
    timed.clock.advance(seconds=1)
    assert await timed.idempotency.claim("s", "k", "d") is None
    assert await timed.idempotency.claim("s", "k", "d") is not None


async def test_answers_are_forgotten_after_a_day(timed: Store) -> None:
    await timed.idempotency.claim("s", "k", "d")
    await timed.idempotency.settle("s", "k", 200, None, {})
    timed.clock.advance(hours=23)
    assert await timed.idempotency.claim("s", "k", "d") is not None
    timed.clock.advance(hours=1)
    assert await timed.idempotency.claim("s", "k", "other") is None


async def test_of_many_claims_one_is_the_callers(two: tuple[Store, Store]) -> None:
    claims = await asyncio.gather(*(two[number % 2].idempotency.claim("s", "k", "d") for number in range(8)))
    assert claims.count(None) == 1
