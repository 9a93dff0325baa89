"""A gateway with more connections than it can have: edges get through, and somebody is told."""

import json
from contextlib import ExitStack, closing
from pathlib import Path
from uuid import uuid4

import httpx
import pytest
from gateway_centre import EdgeCredentials
from lone_gateway import LoneGateway
from raw_client import RawClient, half_a_handshake
from supervised import eventually

IDLE = 1_100
MORE_THAN_THE_SYSTEM_KEEPS = 4
"""Answers of 1.7 MB each that Linux does not all take from a program on behalf of a client that reads none."""


def heartbeat(gateway: LoneGateway, edge: EdgeCredentials, source: str = "127.0.0.1") -> httpx.Response:
    """A heartbeat on a connection of its own."""
    transport = httpx.HTTPTransport(local_address=source, verify=gateway.trusted)
    with httpx.Client(transport=transport, trust_env=False, timeout=30) as client:
        return client.post(f"{gateway.url}/v1/agent/heartbeat", headers=edge.as_agent, json={})


def planner(gateway: LoneGateway) -> str:
    """A token that may write entries."""
    wish = {"name": f"planner-{uuid4().hex[:8]}", "permissions": ["clusters"]}
    return str(gateway.api("POST", "/v1/token", json=wish).json()["token"])


def unfinished_write(token: str) -> bytes:
    """A request whose caller is identified before its body is read, which never ends."""
    headers = f"Host: x\r\nAuthorization: Bearer {token}\r\nContent-Length: 100\r\n\r\n"
    return f"PUT /v1/app/{uuid4()}/object/{uuid4()} HTTP/1.1\r\n{headers}{{".encode()


def counted(gateway: LoneGateway, series: str) -> float:
    for line in gateway.api("GET", "/metrics").text.splitlines():
        if line.startswith(f"{series} "):
            return float(line.rpartition(" ")[2])
    return 0.0


@pytest.mark.parametrize("attackers", [1, 50])
def test_1100_idle_connections_keep_no_edge_away(lone: LoneGateway, edge: EdgeCredentials, attackers: int) -> None:
    with ExitStack() as opened:
        for number in range(IDLE):
            source = f"127.0.0.{100 + number % attackers}"
            opened.enter_context(closing(RawClient(lone.url, source=source)))
            if number % 100 == 99:
                assert heartbeat(lone, edge).status_code == 200
        assert heartbeat(lone, edge, source="127.0.0.100").status_code == 200
        assert lone.api("GET", "/readyz").is_success
    assert "Too many open files" not in lone.log.read_text()


@pytest.mark.parametrize("attackers", [1, 50])
def test_1100_handshakes_that_never_end_keep_no_edge_away(
    lone: LoneGateway, edge: EdgeCredentials, attackers: int
) -> None:
    hello = half_a_handshake(lone.url)
    with ExitStack() as opened:
        for number in range(IDLE):
            source = f"127.0.0.{100 + number % attackers}"
            client = opened.enter_context(closing(RawClient(lone.url, secured=False, source=source)))
            client.send_all_of(iter([hello]))
            if number % 100 == 99:
                assert heartbeat(lone, edge).status_code == 200
        assert heartbeat(lone, edge, source="127.0.0.100").status_code == 200


def test_whoever_asks_for_a_large_page_and_reads_nothing_keeps_no_edge_away(
    lone: LoneGateway, edge: EdgeCredentials
) -> None:
    with ExitStack() as opened:
        for number in range(240):
            stuck = opened.enter_context(closing(RawClient(lone.url, source=f"127.0.0.{100 + number % 50}")))
            stuck.send(b"GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: x\r\n\r\n" * MORE_THAN_THE_SYSTEM_KEEPS)
            assert stuck.read_some()
        assert heartbeat(lone, edge).status_code == 200


def test_crowd_is_in_the_log_and_in_the_metrics(lone: LoneGateway) -> None:
    before = counted(lone, 'edgewright_connections_refused_total{reason="made_room"}')
    with ExitStack() as opened:
        for _ in range(300):
            opened.enter_context(closing(RawClient(lone.url, source="127.0.0.100")))
        assert counted(lone, 'edgewright_connections{caller="unknown"}') <= 112
    assert counted(lone, 'edgewright_connections_refused_total{reason="made_room"}') >= before + 100
    assert counted(lone, "edgewright_connections_limit") == 896
    lines = [json.loads(line) for line in lone.log.read_text().splitlines()]
    told = [line for line in lines if line.get("reason") == "made_room"]
    assert told
    assert told[0]["client"].startswith("127.0.0.")
    assert len(told) < 100


def test_busy_connections_of_one_token_are_refused_with_a_problem(lone: LoneGateway, edge: EdgeCredentials) -> None:
    token = planner(lone)
    known = {"Authorization": f"Bearer {token}"}
    assert httpx.get(f"{lone.url}/v1/cluster", headers=known, trust_env=False, verify=lone.trusted).status_code == 403
    with ExitStack() as opened:
        clients = [
            opened.enter_context(closing(RawClient(lone.url, source=f"127.0.0.{10 + number % 3}")))
            for number in range(113)
        ]
        for client in clients:
            client.send(unfinished_write(token))
        eventually(lambda: any(client.has_answer for client in clients))
        answer = next(client for client in clients if client.has_answer).read_answer()
        assert answer.startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
        assert b"too_many_connections" in answer
        assert counted(lone, 'edgewright_connections_refused_total{reason="token_limit"}') >= 1
        requests = [json.loads(line) for line in lone.log.read_text().splitlines()]
        assert not [each for each in requests if each.get("status") == 429], "refused before it is a request"
        assert heartbeat(lone, edge).status_code == 200
        assert lone.api("GET", "/v1/cluster").status_code == 200


def test_a_trusted_proxy_is_not_limited_but_whoever_asks_it_is(lone: LoneGateway, edge: EdgeCredentials) -> None:
    line = str(lone.api("POST", f"/v1/cluster/{edge.cluster}/bootstrap-url").json())
    bearer = f"Authorization: Bearer {line.partition('token=')[2]}\r\n"
    made_room = 'edgewright_connections_refused_total{reason="made_room"}'
    before = counted(lone, made_room)
    with ExitStack() as opened:

        def begin_to_register(client: str) -> RawClient:
            connection = opened.enter_context(closing(RawClient(lone.url, source="127.0.0.9")))
            headers = f"Host: x\r\nX-Forwarded-For: 10.0.0.1, {client}\r\n{bearer}Content-Length: 100\r\n\r\n"
            connection.send(f"POST /v1/register HTTP/1.1\r\n{headers}{{".encode())
            return connection

        begun = [begin_to_register(f"198.51.100.{number % 2}") for number in range(140)]
        assert counted(lone, made_room) == before
        begun += [begin_to_register("198.51.100.1") for _ in range(43)]
        eventually(lambda: counted(lone, made_room) > before)
        assert not begun[0].is_closed
        assert begun[1].read_answer().startswith(b"HTTP/1.1 503 "), (
            "what ends without an answer is a dead gateway to nginx"
        )
        assert heartbeat(lone, edge, source="127.0.0.9").status_code == 200


def test_x_forwarded_for_of_anybody_else_is_not_believed(lone: LoneGateway) -> None:
    httpx.get(f"{lone.url}/ping", headers={"X-Forwarded-For": "198.51.100.77"}, trust_env=False, verify=lone.trusted)
    transport = httpx.HTTPTransport(local_address="127.0.0.9", verify=lone.trusted)
    with httpx.Client(transport=transport, trust_env=False) as proxy:
        proxy.get(f"{lone.url}/ping", headers={"X-Forwarded-For": "198.51.100.78"})
    eventually(lambda: "198.51.100.78" in lone.log.read_text())
    assert "198.51.100.77" not in lone.log.read_text()


def test_a_gateway_raises_its_soft_limit_of_files_to_the_hard_one(lone: LoneGateway) -> None:
    limits = Path(f"/proc/{lone.process.pid}/limits").read_text()
    soft, hard = next(line for line in limits.splitlines() if line.startswith("Max open files")).split()[3:5]
    assert soft == hard
