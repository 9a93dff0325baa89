"""What the gateway reads of a request, and what it refuses before or while reading."""

import json
import secrets
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from gateway_centre import STATUS_APP, EdgeCredentials, GatewayCentre, bearer
from hypothesis import given
from hypothesis import strategies as st

from api import bodies
from api.allowances import PAYER_LIMIT, Allowance
from api.bodies import ENTRY_JSON, LEAST_CHARGE, OFF_LOOP, SMALL_JSON, STATUS_JSON
from api.json_text import JsonLimits, parse_json
from edgewright.domain.cluster import Role
from edgewright.domain.credentials import cluster_secret
from edgewright.errors import EdgewrightError, TooMany

AGENT_DOORS = (("POST", "/v1/agent/heartbeat"), ("POST", "/v1/agent/credential"), ("PUT", "/v1/agent/status"))


class Watched:
    """A body of one mebibyte that knows how much of it was asked for."""

    def __init__(self) -> None:
        self.read = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for _ in range(16):
            self.read += 1
            yield b" " * 65536


class Hand:
    """A clock in the hand of the test."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
async def edge(centre: GatewayCentre) -> EdgeCredentials:
    return await centre.register(await centre.create("edge"))


def code_of(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    return answer.status_code, answer.json()["code"]


async def test_the_body_behind_a_dead_registration_token_is_not_read(
    centre: GatewayCentre, anybody: httpx.AsyncClient
) -> None:
    cluster = await centre.create("edge")
    replaced = await centre.bootstrap_token(cluster)
    spent = await centre.bootstrap_token(cluster)
    edge = await centre.register(cluster, token=spent)
    assert (await centre.client(edge.as_agent).post("/v1/agent/heartbeat")).status_code == 200
    for token, code in ((replaced, "token_replaced"), (spent, "token_spent")):
        body = Watched()
        answer = await anybody.post("/v1/register", content=body, headers=bearer(token))
        assert (code_of(answer), body.read) == ((403, code), 0)


async def test_a_dead_token_spends_nothing_of_its_clusters_allowances(
    centre: GatewayCentre, anybody: httpx.AsyncClient
) -> None:
    cluster = await centre.create("edge")
    spent = await centre.bootstrap_token(cluster)
    edge = await centre.register(cluster, token=spent)
    agent = centre.client(edge.as_agent)
    assert (await agent.post("/v1/agent/heartbeat")).status_code == 200
    wrong = {"kube_system_uid": "u", "kubernetes_version": "v1", "flux_secret": "ewf_" + "0" * 64}
    answers = [
        await anybody.post("/v1/register", json={**wrong, "agent_secret": "ewa_" + "1" * 64}, headers=bearer(spent))
        for _ in range(40)
    ]
    assert {code_of(answer)[0] for answer in answers} == {403, 429}
    fresh = await centre.bootstrap_token(cluster)
    body = {**wrong, "agent_secret": "ewa_" + "2" * 64, "kube_system_uid": "uid-1"}
    assert (await anybody.post("/v1/register", json=body, headers=bearer(fresh))).status_code == 200


async def test_resealed_values_that_nobody_asked_for_are_not_read(
    centre: GatewayCentre, edge: EdgeCredentials
) -> None:
    body = Watched()
    answer = await centre.client(edge.as_agent).post("/v1/agent/resealed", content=body)
    assert (code_of(answer), body.read) == ((409, "nothing_to_reseal"), 0)


@pytest.mark.parametrize(("method", "path"), AGENT_DOORS)
async def test_an_edge_sends_no_more_than_it_has_to_say(
    centre: GatewayCentre, edge: EdgeCredentials, method: str, path: str
) -> None:
    limits = STATUS_JSON if path.endswith("status") else SMALL_JSON
    agent = centre.client(edge.as_agent)
    too_long = await agent.request(method, path, content=b" " * (limits.octets + 1))
    assert code_of(too_long) == (413, "too_large")
    deep = await agent.request(method, path, content=b'{"a":' * limits.levels + b"[]" + b"}" * limits.levels)
    assert code_of(deep) == (422, "json_too_deep")
    wide = await agent.request(method, path, content=json.dumps({"a": [0] * limits.nodes}, separators=(",", ":")))
    assert code_of(wide) == (422, "json_too_many_nodes")


async def test_a_status_through_the_config_store_has_the_same_limits(
    centre: GatewayCentre, edge: EdgeCredentials, admin: httpx.AsyncClient
) -> None:
    for caller in (centre.client(edge.as_agent), admin):
        too_long = b" " * (STATUS_JSON.octets + 1)
        answer = await caller.put(f"/v1/app/{STATUS_APP}/object/{edge.cluster}", content=too_long)
        assert code_of(answer) == (413, "too_large")


async def test_refusals_for_a_limit_are_counted(centre: GatewayCentre, edge: EdgeCredentials) -> None:
    agent = centre.client(edge.as_agent)
    await agent.post("/v1/agent/heartbeat", content=b"[" * 1000)  # not JSON, which nobody finds out
    await agent.post("/v1/agent/heartbeat", content=b" " * (SMALL_JSON.octets + 1))
    text = centre.gateway.metrics.exposition(None, {}).decode()
    assert 'edgewright_limited_total{code="json_too_deep"} 1.0' in text
    assert 'edgewright_limited_total{code="too_large"} 1.0' in text


@pytest.mark.parametrize("start", [b"[" * 200, b"[" + b"[],[]," * 100_000, b"[" + b"1," * 600_000])
def test_too_much_is_refused_before_any_value_is_made(start: bytes) -> None:
    with pytest.raises(EdgewrightError) as refusal:
        parse_json(start + b"and then no JSON at all", ENTRY_JSON)
    assert refusal.value.code in {"json_too_deep", "json_too_many_nodes"}


@pytest.mark.parametrize("text", ['"' * 500_000, '"\\"' * 200_000, "]}" * 300_000])
def test_text_that_only_looks_like_many_strings_is_given_up_early(text: str) -> None:
    with pytest.raises(EdgewrightError) as refusal:
        parse_json(text.encode(), ENTRY_JSON)
    assert refusal.value.code == "json_malformed"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_every_value_within_the_limits_is_read_as_it_was_written(value: Any) -> None:
    for written in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        try:
            read = parse_json(written.encode(errors="surrogatepass"), JsonLimits(10**9, levels=2, nodes=10**9))
        except EdgewrightError as refusal:
            assert refusal.code in {"json_malformed", "json_too_deep"}
            assert "\\u0000" in json.dumps(value) or _levels(value) > 2
        else:
            assert read == value
            assert _levels(value) <= 2


def _levels(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(_levels, inner), default=0)


async def test_a_large_body_is_parsed_off_the_event_loop(
    centre: GatewayCentre, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A spy instead of a measurement: how long a loop stands still depends on the machine.
    threads: list[bool] = []

    def parse(body: bytes, limits: JsonLimits) -> Any:
        threads.append(threading.current_thread() is threading.main_thread())
        return parse_json(body, limits)

    monkeypatch.setattr(bodies, "parse_json", parse)
    for octets in (10, OFF_LOOP + 1):
        await admin.post("/v1/cluster", content=b"[]" + b" " * (octets - 2))
    assert threads == [True, False]


async def test_an_edge_that_sends_too_much_slows_down_itself_alone(
    centre: GatewayCentre, edge: EdgeCredentials
) -> None:
    clock = Hand()
    allowance = Allowance(
        burst=4 * LEAST_CHARGE, per_second=LEAST_CHARGE, code="body_allowance_spent", sentence="Slowly.", clock=clock
    )
    centre.app.state.access = replace(centre.app.state.access, edge_bodies=allowance)
    centre.change()
    other = centre.client((await centre.register(await centre.create("other"), uid="other")).as_agent)
    agent = centre.client(edge.as_agent)
    for _ in range(4):
        assert (await agent.post("/v1/agent/heartbeat", content=b"{}")).status_code == 200
    refused = await agent.post("/v1/agent/heartbeat", content=b"{}")
    assert code_of(refused) == (429, "body_allowance_spent")
    assert refused.headers["Retry-After"] == "1"
    assert (await other.post("/v1/agent/heartbeat", content=b"{}")).status_code == 200
    clock.at += 1
    assert (await agent.post("/v1/agent/heartbeat", content=b"{}")).status_code == 200


def test_an_allowance_says_when_there_is_enough_again() -> None:
    clock = Hand()
    allowance = Allowance(burst=10, per_second=2, code="spent", sentence="Slowly.", clock=clock)
    allowance.spend("a", 10)
    for _ in range(2):
        with pytest.raises(TooMany) as refusal:
            allowance.spend("a", 4)
        assert (refusal.value.code, refusal.value.retry_after) == ("spent", 2)
    clock.at = 2
    allowance.spend("a", 4)
    clock.at = 1000
    allowance.spend("a", 11)  # more than there ever is: all of it


def test_an_allowance_remembers_a_bounded_number_of_callers() -> None:
    allowance = Allowance(burst=1, per_second=0.001, code="spent", sentence="Slowly.")
    for payer in range(PAYER_LIMIT + 1):
        allowance.spend(payer, 1)
    allowance.spend(0, 1)
    with pytest.raises(TooMany):
        allowance.spend(2, 1)


async def test_an_edge_that_reports_too_often_is_told_when_to_come_again(
    centre: GatewayCentre, edge: EdgeCredentials
) -> None:
    allowance = Allowance(burst=2, per_second=0.1, code="status_too_often", sentence="Slowly.", clock=Hand())
    centre.app.state.live = replace(centre.app.state.live, edge_statuses=allowance)
    centre.change()
    agent = centre.client(edge.as_agent)
    assert (await agent.put("/v1/agent/status", json={"hosts": []})).status_code == 204
    path = f"/v1/app/{STATUS_APP}/object/{edge.cluster}"
    assert (await agent.put(path, json={"hosts": []})).status_code == 204
    for door in ("/v1/agent/status", path):
        refused = await agent.put(door, json={"hosts": []})
        assert code_of(refused) == (429, "status_too_often")
        assert refused.headers["Retry-After"] == "10"
    assert (await agent.post("/v1/agent/heartbeat", json={})).status_code == 200


async def test_an_edge_that_makes_credentials_without_end_has_to_wait(
    centre: GatewayCentre, edge: EdgeCredentials
) -> None:
    allowance = Allowance(burst=1, per_second=0.1, code="credentials_too_often", sentence="Slowly.", clock=Hand())
    centre.app.state.live = replace(centre.app.state.live, edge_secrets=allowance)
    centre.change()
    agent = centre.client(edge.as_agent)
    fresh = {"role": "flux", "secret": cluster_secret(Role.FLUX, secrets.token_bytes(32)).text}
    assert (await agent.post("/v1/agent/credential", json=fresh)).status_code == 200
    assert code_of(await agent.post("/v1/agent/credential", json=fresh)) == (429, "credentials_too_often")


async def test_a_caller_opens_a_bounded_number_of_sessions(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    clock = Hand()
    allowance = Allowance(burst=3, per_second=0.1, code="sessions_too_often", sentence="Slowly.", clock=clock)
    centre.app.state.live = replace(centre.app.state.live, sessions=allowance)
    centre.change()
    opener = admin
    for _ in range(3):  # a session counts against the token that it comes from
        opener = centre.client(bearer((await opener.post("/token")).json()["token"]))
    refused = await opener.post("/token")
    assert code_of(refused) == (429, "sessions_too_often")
    assert refused.headers["Retry-After"] == "10"
    agent = centre.client(edge.as_agent)
    assert [(await agent.post("/token")).status_code for _ in range(4)] == [200, 200, 200, 429]
    clock.at += 10
    assert (await opener.post("/token")).status_code == 200
