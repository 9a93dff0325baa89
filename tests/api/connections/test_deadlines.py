"""How long a gateway waits for a client, and whom it goes on waiting for."""

import json
import threading
from functools import partial
from itertools import repeat

import pytest
from bounded_gateway import BoundedGateway
from raw_client import RawClient, dripping, half_a_handshake
from supervised import eventually

from edgewright.ports.operators import Permission


@pytest.fixture(scope="module")
def admin(live: BoundedGateway) -> str:
    return live.token(Permission.ADMIN)["Authorization"]


def request_head(method: str, path: str, authorization: str, length: int) -> bytes:
    return (
        f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: {authorization}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def test_silent_connection_is_closed(live: BoundedGateway) -> None:
    before = live.refused("silent")
    with live.deadlines(head_seconds=0.5):
        assert RawClient(live.url).read_until_closed() == b""
    assert live.refused("silent") == before + 1


def test_handshake_that_does_not_come_is_not_waited_for(live: BoundedGateway) -> None:
    with live.deadlines(handshake_seconds=0.5, head_seconds=0.5):
        assert RawClient(live.url, secured=False).read_until_closed() == b""
    assert live.refused("handshake_deadline" if live.url.startswith("https") else "silent") >= 1


def test_handshake_that_comes_drop_by_drop_is_closed(live: BoundedGateway) -> None:
    hello = half_a_handshake(live.url)
    with live.deadlines(handshake_seconds=1.0, head_seconds=1.0):
        client = RawClient(live.url, secured=False)
        with dripping(client, iter(hello[at : at + 1] for at in range(len(hello))), every=0.1):
            client.read_until_closed()


@pytest.mark.parametrize("sent", [b"G", b"GET /ping HTTP/1.1\r\nHost: x\r\nX-Half: a"])
def test_half_a_head_is_closed(live: BoundedGateway, sent: bytes) -> None:
    with live.deadlines(head_seconds=2.0):
        client = RawClient(live.url)
        client.send(sent)
        assert client.read_until_closed().startswith(b"HTTP/1.1 408 Request Timeout\r\n")


def test_head_that_comes_drop_by_drop_is_closed(live: BoundedGateway) -> None:
    with live.deadlines(head_seconds=2.0):
        client = RawClient(live.url)
        client.send(b"GET /ping HTTP/1.1\r\n")
        with dripping(client, repeat(b"X: y\r\n"), every=0.1):
            assert b" 408 Request Timeout\r\n" in client.read_until_closed()


def test_half_a_body_is_closed(live: BoundedGateway, admin: str) -> None:
    with live.deadlines(body_seconds=0.5):
        client = RawClient(live.url)
        client.send(request_head("POST", "/v1/cluster", admin, 1000) + b'{"name":')
        head, _, body = client.read_until_closed().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert json.loads(body)["code"] == "request_timeout"


def test_body_that_comes_drop_by_drop_is_closed(live: BoundedGateway, admin: str) -> None:
    with live.deadlines(body_seconds=1.0):
        client = RawClient(live.url)
        client.send(request_head("POST", "/v1/cluster", admin, 10_000))
        with dripping(client, repeat(b" "), every=0.1):
            assert b" 408 Request Timeout\r\n" in client.read_until_closed()


def test_slow_body_is_taken_as_long_as_it_goes_on(live: BoundedGateway, admin: str) -> None:
    body = b'{"name":' + b" " * 12_000 + b'"slow"}'
    with live.deadlines(body_seconds=2.0):
        client, line = RawClient(live.url), threading.Event()
        client.send(request_head("POST", "/v1/cluster", admin, len(body)))
        for start in range(0, len(body), 800):
            client.send(body[start : start + 800])
            line.wait(0.3)  # the line is what is slow: two deadlines pass meanwhile
        assert client.read_answer().startswith(b"HTTP/1.1 201 Created\r\n")


def test_long_poll_outlives_every_deadline(live: BoundedGateway, admin: str) -> None:
    live.centre.workflow.commissions = False
    try:
        cluster = live.run(live.centre.create("awaited"))
    finally:
        live.centre.workflow.commissions = True
    with live.deadlines(head_seconds=2.0, body_seconds=2.0, answer_seconds=2.0, idle_seconds=2.0):
        client = RawClient(live.url)
        client.send(
            f"GET /v1/cluster/{cluster}/ready?wait=5 HTTP/1.1\r\nHost: x\r\nAuthorization: {admin}\r\n\r\n".encode()
        )
        assert b'"ready":false' in client.read_answer()


def test_event_stream_outlives_every_deadline(live: BoundedGateway, admin: str) -> None:
    with live.deadlines(head_seconds=2.0, body_seconds=2.0, answer_seconds=2.0, idle_seconds=2.0):
        client = RawClient(live.url)
        client.send(f"GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: {admin}\r\n\r\n".encode())
        assert b"200 OK" in client.read_some()
        for _ in range(2):
            assert RawClient(live.url).read_until_closed() == b""  # one deadline
        live.run(live.centre.create("told-late"))
        told = b""
        while b"told-late" not in told:
            told += client.read_some()


def test_idle_connection_is_closed_after_its_answer(live: BoundedGateway) -> None:
    with live.deadlines(idle_seconds=0.5):
        client = RawClient(live.url)
        client.send(b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"200 OK" in client.read_until_closed()


def test_client_that_does_not_read_its_answers_is_closed(live: BoundedGateway) -> None:
    metrics, before = live.centre.gateway.metrics.registry, live.refused("answer_deadline")
    answered = {"method": "GET", "route": "(none)", "status": "200"}

    def count() -> float:
        return metrics.get_sample_value("edgewright_http_requests_total", answered) or 0.0

    def has_moved_on(so_far: float) -> bool:
        return count() > so_far or live.refused("answer_deadline") > before

    with live.deadlines(answer_seconds=1.0):
        client = RawClient(live.url)
        while live.refused("answer_deadline") == before:
            so_far = count()
            client.send(b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n")
            eventually(partial(has_moved_on, so_far))
