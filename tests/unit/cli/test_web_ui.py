"""The guard before Temporal's Web UI: who is let through, and that what is let through arrives as it was."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import uvicorn
from free_ports import free_port
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from edgewright.cli.web_ui import LOOPBACK_NAMES, Guard, guarded

OURS = "127.0.0.1:8233"


@pytest.mark.parametrize(
    ("method", "headers", "passes"),
    [
        ("GET", {"host": OURS}, True),
        ("GET", {"host": "localhost:9000"}, True),  # the near end of a tunnel
        ("GET", {"host": "[::1]:8233"}, True),
        ("GET", {"host": "UI.example.com"}, True),
        ("GET", {"host": "attacker.example:8233"}, False),
        ("GET", {"host": "127.0.0.1.attacker.example:8233"}, False),
        ("GET", {"host": "attacker@127.0.0.1.attacker.example"}, False),
        ("GET", {}, False),
        ("GET", {"host": "["}, False),
        ("POST", {"host": OURS, "origin": f"http://{OURS}"}, True),
        ("POST", {"host": OURS}, True),  # curl
        ("POST", {"host": OURS, "origin": "http://127.0.0.1:3000"}, False),
        ("POST", {"host": OURS, "origin": "null"}, False),
        ("POST", {"host": OURS, "origin": "http://attacker.example"}, False),
        ("POST", {"host": OURS, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, False),
        ("POST", {"host": OURS, "sec-fetch-site": "same-origin", "origin": f"http://{OURS}"}, True),
        ("GET", {"host": OURS, "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}, True),
        ("GET", {"host": OURS, "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}, False),
    ],
)
def test_only_pages_of_the_web_ui_itself_get_through(method: str, headers: dict[str, str], passes: bool) -> None:
    refusal = Guard(LOOPBACK_NAMES | {"ui.example.com"}).refusal(method, Headers(headers))
    assert (refusal is None) == passes


def test_two_host_headers_are_none() -> None:
    headers = Headers(raw=[(b"host", OURS.encode()), (b"host", b"attacker.example")])
    assert Guard(LOOPBACK_NAMES).refusal("GET", headers)


async def test_what_is_let_through_arrives_as_it_was() -> None:
    async def echo(request: Request) -> Response:
        told = {"method": request.method, "raw": request.scope["raw_path"].decode(), "query": request.url.query}
        told |= {"host": request.headers["host"], "body": (await request.body()).decode()}
        answer = JSONResponse(told, 418, headers={"X-Kept": "yes"})
        answer.set_cookie("one", "1")
        answer.set_cookie("two", "2")
        return answer

    async with served(Starlette(routes=[Route("/{path:path}", echo, methods=["GET", "POST"])])) as upstream:
        guard = guarded(upstream, LOOPBACK_NAMES)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(guard), base_url=f"http://{OURS}") as client:
            answer = await client.post("/a%2Fb/c?d=%20e&d=f", content=b"body")
    assert answer.status_code == 418
    assert answer.json() == {
        "method": "POST", "raw": "/a%2Fb/c", "query": "d=%20e&d=f", "host": upstream, "body": "body",
    }  # fmt: skip
    assert answer.headers["x-kept"] == "yes"
    assert {cookie.split("=")[0] for cookie in answer.headers.get_list("set-cookie")} == {"one", "two"}


async def test_web_ui_that_is_away_is_said() -> None:
    guard = guarded(f"127.0.0.1:{free_port()}", LOOPBACK_NAMES)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(guard), base_url=f"http://{OURS}") as client:
        answer = await client.get("/")
    assert (answer.status_code, answer.text) == (502, "Temporal's Web UI does not answer (ConnectError).\n")


@asynccontextmanager
async def served(app: Starlette) -> AsyncIterator[str]:
    """Serves an application; yields ``host:port``."""
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning"))
    running = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await running
