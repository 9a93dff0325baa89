"""The guard before Temporal's Web UI: who is let through, and that what is let through arrives as it was."""

import asyncio
import base64
import hashlib
import html
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import uvicorn
from free_ports import free_port
from npm_packages import NODE
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


# --- the page that names clusters ----------------------------------------------------------------------------------

BROWSER = """
const [script, wanted, kept] = JSON.parse(process.argv[1]);
const stored = kept === null ? {} : {[JSON.parse(wanted)[0]]: kept};
const document = {body: {dataset: {wanted}}};
const localStorage = {getItem: (key) => stored[key] ?? null, setItem: (key, value) => { stored[key] = value; }};
let target = null;
const location = {replace: (url) => { target = url; }};
try { new Function("document", "localStorage", "location", script)(document, localStorage, location); } catch {}
console.log(JSON.stringify([target, Object.values(stored)[0] ?? null]));
"""


async def opened(kept: str | None) -> tuple[str, str | None]:
    """Where the page goes in a browser that keeps these columns, and which it keeps then."""
    guard = guarded("127.0.0.1:1", LOOPBACK_NAMES, "plant")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(guard), base_url=f"http://{OURS}") as client:
        page = await client.get("/clusters")
    [script] = re.findall(r"<script>(.*)</script>", page.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page.headers["content-security-policy"]
    [wanted] = re.findall(r'data-wanted="([^"]*)"', page.text)
    command = [str(NODE), "-e", BROWSER, json.dumps([script, html.unescape(wanted), kept])]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=True)
    target, columns = json.loads(done.stdout)
    return target, columns


def labels(kept: str | None) -> list[str]:
    return [column["label"] for column in json.loads(kept or "{}")["plant"]]


async def test_the_page_goes_to_the_list_of_clusters_and_shows_their_names() -> None:
    target, columns = await opened(None)
    assert target == "namespaces/plant/workflows?query=%60WorkflowType%60%3D%22ManagedCluster%22"
    assert labels(columns)[:2] == ["Status", "EdgewrightName"]
    assert await opened(columns) == (target, columns), "once is enough"


async def test_columns_that_somebody_has_chosen_stay() -> None:
    _, columns = await opened('{"plant": [{"label": "Status"}, {"label": "End"}], "other": []}')
    assert labels(columns) == ["Status", "EdgewrightName", "End"]
    assert json.loads(columns or "")["other"] == []


async def test_a_browser_that_keeps_something_else_is_sent_on_all_the_same() -> None:
    target, columns = await opened("no JSON")
    assert (target.partition("?")[0], columns) == ("namespaces/plant/workflows", "no JSON")


async def test_the_page_is_guarded_too() -> None:
    guard = guarded("127.0.0.1:1", LOOPBACK_NAMES)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(guard), base_url="http://attacker.example") as client:
        assert (await client.get("/clusters")).status_code == 403


def test_the_guard_starts_without_what_only_the_gateway_needs() -> None:
    """FastAPI doubles the processor time of its start."""
    program = "import edgewright.cli.web_ui, sys; print([name for name in sys.modules if name == 'fastapi'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
