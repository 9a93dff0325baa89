"""Whoever takes too much of a gateway's time slows down nobody else."""

import httpx
import pytest
from gateway_centre import EdgeCredentials, GatewayCentre, bearer

from api import operator_time
from edgewright.ports.operators import Permission


async def overdraw(centre: GatewayCentre, secret: str, seconds: float) -> None:
    """Has a token owe the gateway time."""
    (await centre.app.state.access.operator_time.turn(secret)).charge(operator_time.BURST_SECONDS + seconds)


async def test_a_token_that_owes_much_time_is_refused_and_nobody_else(
    centre: GatewayCentre, edge: EdgeCredentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator_time, "LONGEST_WAIT", 0.0)  # a test that waits for nothing
    busy, other = await centre.token(Permission.READ), await centre.token(Permission.READ)
    await overdraw(centre, busy.text, 100)
    refused = await centre.client(bearer(busy.text)).get("/v1/cluster")
    assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
    assert 100 < int(refused.headers["Retry-After"]) < 1000
    assert (await centre.client(bearer(other.text)).get("/v1/cluster")).status_code == 200
    beat = await centre.client(edge.as_agent).post("/v1/agent/heartbeat", json={})
    assert beat.status_code == 200
    poll = await centre.client(edge.as_flux).get(f"/uuid/{edge.cluster}/info/refs?service=git-upload-pack")
    assert poll.status_code == 200
    scraped = (await centre.client(bearer(other.text)).get("/metrics")).text
    assert 'edgewright_limited_total{code="too_many_requests"} 1.0' in scraped


async def test_a_token_that_owes_a_little_is_answered_later(centre: GatewayCentre) -> None:
    busy = await centre.token(Permission.READ)
    accounts = centre.app.state.access.operator_time
    meter = await accounts.turn(busy.text)
    meter.charge(operator_time.BURST_SECONDS + operator_time.SHARE / 2)
    assert (await centre.client(bearer(busy.text)).get("/v1/cluster")).status_code == 200
    assert meter.account.seconds_until_paid(meter.clock()) < 0.5


async def test_a_session_pays_with_the_token_that_opened_it(
    centre: GatewayCentre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operator_time, "LONGEST_WAIT", 0.0)
    token = await centre.token(Permission.READ)
    session = (await centre.client(bearer(token.text)).post("/token")).json()["token"]
    by_session = centre.client(bearer(session))
    assert (await by_session.get("/v1/cluster")).status_code == 200
    await overdraw(centre, token.text, 100)
    assert (await by_session.get("/v1/cluster")).status_code == 429


async def test_a_large_body_costs_more_than_a_small_one(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    secret = admin.headers["Authorization"].removeprefix("Bearer ")

    async def price(name: str, values: int) -> float:
        meter = await centre.app.state.access.operator_time.turn(secret)
        before = meter.account.spent
        body = {"name": name, "namespace": "edge", "values": {f"k{number}": number for number in range(values)}}
        assert (await admin.post("/v1/cluster", json=body)).status_code == 201
        return float(meter.account.spent - before)

    await price("first", 1)  # what is loaded at the first use is no cost of a body
    small, large = await price("small", 1), await price("large", 5_000)
    assert large > 1.5 * small > 0
