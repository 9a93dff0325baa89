"""Hostile callers, one of each kind. Each goes on until it is stopped, and waits a moment between two requests."""

import asyncio
import json
import os
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import cycle, product
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
from delta_bomb import delta_bomb, push_body, top_rows
from temporalio.client import Client

from bench.edge_identities import secret_of, status_of
from bench.siege.target import Target
from edgewright.domain.cluster import Role
from edgewright.messages.names import SIGNAL_EDGE_STATUS, workflow_id

PAUSE = 0.02
ADDRESS = "127.0.0.2"
"""Nobody who is hostile shares an address with an edge; who does, shares its bounds, too."""
LANES = 4
"""Connections that one caller uses at once, where the attack is not about connections."""
ALLOWED = 1024 * 1024
"""Bytes that most routes took as a body, before limits per route."""
NESTED = b"[" * (ALLOWED // 2) + b"]" * (ALLOWED // 2)
WIDE = json.dumps({"hosts": [{"hostname": f"h{n}", "x": [n] * 8} for n in range(12_000)]}).encode()
PAGE_HOSTS = ("page.example", "127.0.0.1:{port}")
"""What a browser says as ``Host``: after DNS rebinding, and without it."""
IDLE_CONNECTIONS = 1_100
STREAMS = 600
UNFINISHED = 32
SIGNALS = 5_000
BOMB_BLOCKS = (100 * 16, 400 * 16)
"""Of 64 KiB each, which git unpacks from a pack of a few kilobytes: what it may allocate, and more than that."""


Attack = Callable[[Target], Awaitable[None]]


async def browser_page(target: Target) -> None:
    """A web page on the centre's machine: it can send simple requests anywhere, and reads no answer."""
    bodies = [
        {
            "signalOperation": {"signal": signal, "input": {"payloads": [payload]}, "identity": "page"},
            "visibilityQuery": "WorkflowType='ManagedCluster'",
            "reason": "page",
            "jobId": f"page-{signal}",
        }
        for signal, payload in (
            ("delete", {"force": True}),
            (SIGNAL_EDGE_STATUS, {"kubeseal_cert": target.certificate}),
        )
    ]
    headers = {"Content-Type": "text/plain", "Origin": "http://page.example"}
    async with httpx.AsyncClient(headers=headers, timeout=5, trust_env=False) as http:
        while True:
            for port, body, host in product(target.ports, bodies, PAGE_HOSTS):
                with suppress(httpx.HTTPError):
                    url = f"http://127.0.0.1:{port}/api/v1/namespaces/default/batch-operations/{body['jobId']}"
                    named = {"Host": host.format(port=port)}
                    answer = await http.post(url, content=json.dumps(body), headers=named)
                    target.met[OBEYED] += answer.is_success
                    target.met[REFUSED_PAGES] += answer.is_client_error
            await asyncio.sleep(PAUSE)


async def spent_token(target: Target) -> None:
    """Somebody with a bootstrap line that was used long ago."""
    headers = {"Authorization": f"Bearer {target.spent_token}", "Content-Type": "application/json"}
    async with _client(target, headers=headers) as http:
        await asyncio.gather(
            *(_lane(http, "POST", "/v1/register", lambda: NESTED) for _ in range(LANES - 1)),
            _registers_again(target, http),
        )


async def _registers_again(target: Target, http: httpx.AsyncClient) -> None:
    """As the script does, on another machine."""
    while True:
        body = {"kube_system_uid": str(uuid4()), "kubernetes_version": "v1.33.13"}
        body |= {f"{role}_secret": secret_of(target.neighbour, role) for role in Role}
        with suppress(httpx.HTTPError):
            answer = await http.post("/v1/register", json=body)
            target.met[DEAD_TOKENS] += SPENT in answer.text
        await asyncio.sleep(PAUSE)


async def edge(target: Target) -> None:
    """Whoever is admin on one edge: other statuses, answers that nobody asked for, deep and wide documents."""
    agent = httpx.BasicAuth(str(target.cluster), target.agent_password)
    changes = iter(range(1_000_000_000))

    def status() -> bytes:
        return json.dumps(status_of(target.certificate, "main@sha1:0", next(changes))).encode()

    requests: list[tuple[str, str, Callable[[], bytes]]] = [
        ("POST", "/v1/agent/heartbeat", lambda: NESTED),
        ("POST", "/v1/agent/resealed", lambda: WIDE),
        ("PUT", "/v1/agent/status", lambda: WIDE),
        ("PUT", "/v1/agent/status", status),
    ]
    async with _client(target, auth=agent) as http:
        await asyncio.gather(*(_lane(http, method, path, body) for method, path, body in requests))


async def connections(target: Target) -> None:
    """Somebody who can reach the port: silent connections, half a header, and a header without an end."""
    address = urlsplit(target.url)
    idle: list[asyncio.StreamWriter] = []
    try:
        for number in range(IDLE_CONNECTIONS):
            with suppress(OSError):
                _, writer = await asyncio.open_connection(address.hostname, address.port, local_addr=(ADDRESS, 0))
                idle.append(writer)
                if number % 2:
                    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Half")
        line = b"X-Filler: " + b"x" * 8000 + b"\r\n"
        while True:
            with suppress(OSError):
                _, writer = await asyncio.open_connection(address.hostname, address.port, local_addr=(ADDRESS, 0))
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
                for _ in range(9_000):
                    writer.write(line)
                    await writer.drain()
                writer.close()
            await asyncio.sleep(PAUSE)
    finally:
        for writer in idle:
            writer.close()


async def reader(target: Target) -> None:
    """A token with ``read``: event streams, and fetches that it begins and never ends."""
    address = urlsplit(target.url)
    bearer = f"Authorization: Bearer {target.tokens['read']}\r\n"
    fetch = (
        f"POST /uuid/{target.neighbour}/git-upload-pack HTTP/1.1\r\nHost: x\r\n{bearer}"
        "Content-Type: application/x-git-upload-pack-request\r\nContent-Length: 5000\r\n\r\n0011"
    )
    stream = f"GET /v1/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n{bearer}\r\n"
    kept: list[asyncio.StreamWriter] = []
    try:
        while True:
            for request in [fetch] * UNFINISHED + [stream] * STREAMS:
                with suppress(OSError):
                    _, writer = await asyncio.open_connection(address.hostname, address.port, local_addr=(ADDRESS, 0))
                    writer.write(request.encode())
                    kept.append(writer)
            await asyncio.sleep(5)
            for writer in kept:
                writer.close()
            kept.clear()
    finally:
        for writer in kept:
            writer.close()


async def pusher(target: Target) -> None:
    """A token with ``push``: one blob under a thousand names, and a small pack that unpacks to much more."""
    with tempfile.TemporaryDirectory(prefix="edgewright-siege-") as folder:
        copies, bombs = Path(folder) / "copies", Path(folder) / "bombs"
        remote = target.url.replace("://", f"://x:{target.tokens['push']}@")
        for clone in (copies, bombs):
            while not clone.exists():  # it may have to wait for a turn, as everybody
                await _git(Path(folder), "clone", "-q", f"{remote}/uuid/{target.cluster}", clone.name)
        await asyncio.gather(_push_copies(copies), _push_bombs(target, bombs))


async def _push_copies(clone: Path) -> None:
    copies = clone / "by-hand"
    copies.mkdir(exist_ok=True)
    await asyncio.to_thread((copies / "blob-0").write_bytes, bytes(8 * 1024 * 1024))
    for number in range(1, 1_000):
        await asyncio.to_thread(os.link, copies / "blob-0", copies / f"blob-{number}")
    await _git(clone, "add", "-A")
    while True:
        await _git(clone, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x", "--allow-empty")
        await _git(clone, "push", "-q", "origin", "HEAD:main")
        await asyncio.sleep(PAUSE)


async def _push_bombs(target: Target, clone: Path) -> None:
    headers = {"Content-Type": "application/x-git-receive-pack-request"}
    async with _client(target, headers=headers, auth=httpx.BasicAuth("x", target.tokens["push"])) as http:
        for blocks in cycle(BOMB_BLOCKS):
            await _git(clone, "fetch", "-q", "origin")
            head = (await _git(clone, "rev-parse", "origin/main")).strip()
            rows = top_rows(await _git(clone, "ls-tree", "origin/main"))
            new, content = await asyncio.to_thread(delta_bomb, head, rows, blocks)
            with suppress(httpx.HTTPError):
                body = push_body(head, new, content)
                answer = await http.post(f"/uuid/{target.cluster}/git-receive-pack", content=body)
                target.met[OUT_OF_MEMORY] += b"needs more memory" in answer.content
            await asyncio.sleep(PAUSE)


async def planner(target: Target) -> None:
    """A token with ``clusters``: deep and wide values, and a schema whose pattern takes for ever."""
    token = {"Authorization": f"Bearer {target.tokens['clusters']}", "Content-Type": "application/json"}
    schema = json.dumps({"type": "object", "properties": {"hosts": {"type": "array"}, "x": {"pattern": "^(a+)+$"}}})
    schemas, statuses = "dbd8a535-52ba-4f6e-b4f8-9b71aefe09d3", "747a62c9-1b66-4a2e-8dd9-0b70a91b6b75"
    values = json.dumps({"values": {"global": {f"k{n}": n for n in range(20_000)}}}).encode()
    requests = [
        ("PUT", f"/v1/app/{schemas}/object/{statuses}", schema.encode()),
        ("PATCH", f"/v1/cluster/{target.cluster}", NESTED),
        ("PATCH", f"/v1/cluster/{target.cluster}", values),
    ]
    async with _client(target, headers=token) as http:
        await asyncio.gather(*(_lane(http, method, path, partial(bytes, body)) for method, path, body in requests))


async def signals(target: Target) -> None:
    """Access to Temporal's port: a flood of statuses to one cluster."""
    temporal = await Client.connect(target.temporal)
    handle = temporal.get_workflow_handle(workflow_id(target.cluster))
    for number in range(SIGNALS):
        with suppress(Exception):
            await handle.signal(SIGNAL_EDGE_STATUS, {"hosts": [{"hostname": f"flood-{number}"}]})
    await asyncio.Event().wait()


async def bulk_writer(target: Target) -> None:
    """A token with ``secrets``: a thousand keys of one Secret at a time."""
    token = {"Authorization": f"Bearer {target.tokens['secrets']}", "Content-Type": "application/json"}
    path = f"/v1/cluster/{target.cluster}/secret"

    async def lane(http: httpx.AsyncClient, name: str) -> None:
        for number in range(1_000_000):
            changes = [
                {"namespace": "siege", "name": "bulk", "key": f"{name}-{key}", "value_base64": f"{number:08d}"}
                for key in range(1_000)
            ]
            with suppress(httpx.HTTPError):
                await http.post(path, content=json.dumps({"changes": changes}))
            await asyncio.sleep(PAUSE)

    async with _client(target, headers=token) as http:
        await asyncio.gather(lane(http, "one"), lane(http, "two"))


ANSWERED = "answers to the hostile caller"
OUT_OF_MEMORY = "pushes for which git got no more memory"
REFUSED_PAGES = "requests of a web page refused"
OBEYED = "requests of a web page obeyed"
SPENT = "token_spent"
DEAD_TOKENS = "registrations with a spent token refused"
ARRIVES: dict[str, Sequence[str]] = {
    "browser-page": [REFUSED_PAGES],
    "push-token": [OUT_OF_MEMORY],
    "spent-token": [DEAD_TOKENS],
}
"""What has to come of an attack; if it does not, nobody has been attacked."""
SUCCEEDS: dict[str, Sequence[str]] = {"browser-page": [OBEYED]}
"""What must never come of it."""
ATTACKS: dict[str, Attack] = {
    "browser-page": browser_page,
    "spent-token": spent_token,
    "edge": edge,
    "connections": connections,
    "read-token": reader,
    "push-token": pusher,
    "clusters-token": planner,
    "signal-flood": signals,
    "bulk-writer": bulk_writer,
}


async def _lane(http: httpx.AsyncClient, method: str, path: str, body: Callable[[], bytes]) -> None:
    while True:
        with suppress(httpx.HTTPError):
            await http.request(method, path, content=body())
        await asyncio.sleep(PAUSE)


def _client(
    target: Target, *, headers: dict[str, str] | None = None, auth: httpx.BasicAuth | None = None
) -> httpx.AsyncClient:
    async def count(_: httpx.Response) -> None:
        target.met[ANSWERED] += 1

    return httpx.AsyncClient(
        base_url=target.url,
        headers=headers,
        auth=auth,
        timeout=30,
        trust_env=False,
        transport=httpx.AsyncHTTPTransport(local_address=ADDRESS),
        event_hooks={"response": [count]},
    )


async def _git(where: Path, *arguments: str) -> str:
    """Returns what git says; a refusal is what the attacker expects."""
    process = await asyncio.create_subprocess_exec(
        "git",
        *arguments,
        cwd=where,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        said, _ = await process.communicate()
        return said.decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
