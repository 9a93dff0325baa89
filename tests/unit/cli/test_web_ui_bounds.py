"""What one caller may take of the guard before Temporal's Web UI."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace

import httpx
import pytest
import uvicorn
from free_ports import free_port
from raw_client import RawClient
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from supervised import eventually

from edgewright.cli.web_ui import LIMITS, LONGEST_BODY, LOOPBACK_NAMES, guarded, listening

HASTY = replace(LIMITS, head_seconds=1.0, body_seconds=1.0, overall=64, per_address=8)


@contextmanager
def serving(config: uvicorn.Config) -> Iterator[str]:
    """Serves in a thread of its own; yields ``host:port``."""
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    try:
        eventually(lambda: server.started)
        yield f"{config.host}:{config.port}"
    finally:
        server.should_exit = server.force_exit = True
        thread.join(20)


async def length(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


@pytest.fixture(scope="module")
def guard() -> Iterator[str]:
    """The URL of a guard before a UI that says how long a body is."""
    ui = Starlette(routes=[Route("/{path:path}", length, methods=["GET", "POST"])])
    with serving(uvicorn.Config(ui, host="127.0.0.1", port=free_port(), log_level="warning")) as upstream:
        app = guarded(upstream, LOOPBACK_NAMES)
        with serving(listening(app, "127.0.0.1", free_port(), HASTY)) as where:
            yield f"http://{where}"


def test_headers_are_bounded(guard: str) -> None:
    client = RawClient(guard)
    client.send_all_of(iter([b"GET / HTTP/1.1\r\nHost: localhost\r\n", b"X-Long: " + b"a" * 72 * 1024]))
    assert client.read_until_closed().startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Half: a"])
def test_silence_and_half_a_head_come_to_an_end(guard: str, sent: bytes) -> None:
    client = RawClient(guard)
    client.send(sent)
    client.read_until_closed()


def test_half_a_body_comes_to_an_end(guard: str) -> None:
    client = RawClient(guard)
    client.send(b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf")
    assert client.read_until_closed().startswith(b"HTTP/1.1 408 ")


def test_a_body_is_passed_on_up_to_its_bound(guard: str) -> None:
    with httpx.Client(trust_env=False) as client:
        assert client.post(guard, content=b"a" * LONGEST_BODY).text == str(LONGEST_BODY)
        assert client.post(guard, content=iter([b"a" * LONGEST_BODY, b"a"])).status_code == 413


def test_crowd_of_idle_connections_keeps_nobody_away(guard: str) -> None:
    with ExitStack() as opened:
        crowd = [opened.enter_context(closing(RawClient(guard, source="127.0.0.100"))) for _ in range(40)]
        eventually(lambda: crowd[0].is_closed)
        with httpx.Client(trust_env=False) as client:
            assert client.get(guard).is_success
