"""Hostile callers, one of each kind. Each goes on until it is stopped, and waits a moment between two requests.

Late attempts of a commit on a disk that stalls are not among them, as no caller can order one: `make chaos` stalls
the disk (``tools/chaos/stalling_disk.py``), and ``tests/workflows/test_late_commits.py`` plays each case.
"""

import asyncio
import json
import os
import signal
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count, cycle, product
from pathlib import Path
from uuid import UUID, uuid4

import httpx
from delta_bomb import delta_bomb, push_body, top_rows
from temporalio.client import Client
from temporalio.service import RPCError

from bench.edge_identities import secret_of, status_of
from bench.siege.arrivals import (
    BULKS,
    CERTIFICATES,
    COPIES,
    DEEP_HEARTBEATS,
    DEEP_REGISTRATIONS,
    DEEP_VALUES,
    KNOWN_SCHEMAS,
    LARGE_BULKS,
    MANY_CERTIFICATES,
    MANY_SESSIONS,
    MANY_STATUSES,
    OBEYED,
    OUT_OF_MEMORY,
    PATTERNS,
    REFUSED_PAGES,
    SESSIONS,
    SIGNALS,
    SPENT_TOKENS,
    STATUSES,
    UNASKED,
    WIDE_STATUSES,
    WIDE_VALUES,
)
from bench.siege.crowds import connections, reader
from bench.siege.target import ADDRESS, PAUSE, Target
from edgewright.domain.bounds import STATUS_BYTES
from edgewright.domain.cluster import Role
from edgewright.domain.wellknown import APP_CLUSTER_STATUS, APP_CONFIG_SCHEMA, CLASS_APPLICATION
from edgewright.messages.names import SIGNAL_EDGE_STATUS, workflow_id

LANES = 4
"""Connections that one caller uses at once, where the attack is not about connections."""
ALLOWED = 1024 * 1024
"""Bytes that most routes took as a body, before limits per route."""
NESTED = b"[" * (ALLOWED // 2) + b"]" * (ALLOWED // 2)
WIDE = json.dumps({"hosts": [{"hostname": f"h{n}", "x": [n] * 8} for n in range(12_000)]}).encode()
SELDOM_WIDE = 8
"""One status in so many is too wide: it counts as a report all the same, of which an edge may send few."""
PAGE_HOSTS = ("page.example", "127.0.0.1:{port}")
"""What a browser says as ``Host``: after DNS rebinding, and without it."""
COPIED_BYTES = 8 * 1024 * 1024
COPIES_AT_ONCE = 1_000
FLOOD = 5_000
SENDERS = 16
TOO_LARGE = "x" * (STATUS_BYTES + 1)
"""A cluster drops it however few signals wait: so it has drops to tell of after a slow flood, too."""
BACKTRACKS = "^(a+)+$"
"""An engine that tries all that is left again, at each character, is never done with ``PATIENT``."""
PATIENT = "a" * 5_000 + "b"
BOMB_BLOCKS = (100 * 16, 400 * 16)
"""Blocks of 64 KiB, which git unpacks from a few kilobytes: as much as it may allocate, and more than that."""


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
            (SIGNAL_EDGE_STATUS, {"kubeseal_cert": target.certificates[0]}),
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
    deep = Repeated("POST", "/v1/register", lambda: NESTED, {403: DEEP_REGISTRATIONS})
    async with _client(target, headers=headers) as http:
        await asyncio.gather(
            *(_lane(target, http, deep) for _ in range(LANES - 1)),
            _registers_again(target, http),
        )


async def _registers_again(target: Target, http: httpx.AsyncClient) -> None:
    """As the script does, on another machine."""
    while True:
        body = {"kube_system_uid": str(uuid4()), "kubernetes_version": "v1.33.13"}
        body |= {f"{role}_secret": secret_of(target.neighbour, role) for role in Role}
        with suppress(httpx.HTTPError):
            answer = await http.post("/v1/register", json=body)
            target.met[SPENT_TOKENS] += "token_spent" in answer.text
        await asyncio.sleep(PAUSE)


async def edge(target: Target) -> None:
    """Whoever is admin on one edge: other statuses and sealing certificates, sessions without end, answers that
    nobody asked for, deep and wide documents.
    """
    agent = httpx.BasicAuth(str(target.cluster), target.agent_password)
    requests = [
        Repeated("POST", "/v1/agent/heartbeat", lambda: NESTED, {413: DEEP_HEARTBEATS}),
        Repeated("POST", "/v1/agent/resealed", lambda: WIDE, {409: UNASKED}),
        Repeated("POST", "/token", bytes, {200: SESSIONS, 429: MANY_SESSIONS}),
    ]
    async with _client(target, auth=agent) as http:
        await asyncio.gather(_reports(target, http), *(_lane(target, http, request) for request in requests))


async def _reports(target: Target, http: httpx.AsyncClient) -> None:
    """A host that is ready, and is not; with every other status another certificate; now and then one too wide."""
    read, flipped = {"Authorization": f"Bearer {target.tokens['read']}"}, 0
    used: object = None
    async with _client(target, headers=read) as looks:
        for number in count():
            flips, change = number % 2, target.met[STATUSES]
            certificate = target.certificates[(flipped + flips) % 2]
            status = json.dumps(status_of(certificate, "main@sha1:0", change)).encode()
            with suppress(httpx.HTTPError):
                answer = await http.put("/v1/agent/status", content=status if number % SELDOM_WIDE else WIDE)
                target.met[STATUSES] += answer.is_success
                target.met[WIDE_STATUSES] += answer.status_code == 413
                target.met[MANY_STATUSES] += "status_too_often" in answer.text
                target.met[MANY_CERTIFICATES] += "edge_changes_too_often" in answer.text
                flipped += flips and answer.is_success
                shown = await looks.get(f"/v1/cluster/{target.cluster}") if answer.is_success else None
                fingerprint = _told(shown, "certificate", "fingerprint") if shown is not None else None
                if fingerprint is not None:
                    before, used = used, fingerprint
                    target.met[CERTIFICATES] += before not in {None, used}
            await asyncio.sleep(PAUSE)


async def pusher(target: Target) -> None:
    """A token with ``push``: one blob under a thousand names, and a small pack that unpacks to much more."""
    with tempfile.TemporaryDirectory(prefix="edgewright-siege-", ignore_cleanup_errors=True) as folder:
        copies, bombs = Path(folder) / "copies", Path(folder) / "bombs"
        remote = target.url.replace("://", f"://x:{target.tokens['push']}@")
        for clone in (copies, bombs):
            while not clone.exists():  # it may have to wait for a turn, as everybody
                await _git(Path(folder), "clone", "-q", f"{remote}/uuid/{target.cluster}", clone.name)
                await asyncio.sleep(PAUSE)
        await asyncio.gather(_push_copies(target, copies), _push_bombs(target, bombs))


async def _push_copies(target: Target, clone: Path) -> None:
    """The names are only written down: with a file for each, an attacker would be busy with itself."""
    blob = (await _git(clone, "hash-object", "-w", "--stdin", given=bytes(COPIED_BYTES))).strip()
    names = "".join(f"100644 blob {blob}\tby-hand/blob-{number}\n" for number in range(COPIES_AT_ONCE))
    await _git(clone, "update-index", "--index-info", given=names.encode())
    while True:
        await _git(clone, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "x", "--allow-empty")
        said = await _git(clone, "push", "--porcelain", "origin", "HEAD:main")
        target.met[COPIES] += "[remote rejected]" in said
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
    """A token with ``clusters``: deep and wide values, and schemas whose pattern takes for ever."""
    token = {"Authorization": f"Bearer {target.tokens['clusters']}", "Content-Type": "application/json"}
    schema = json.dumps({"type": "object", "properties": {"hosts": {"type": "array"}, "x": {"pattern": BACKTRACKS}}})
    values = json.dumps({"values": {"global": {f"k{n}": n for n in range(20_000)}}})
    known = f"/v1/app/{APP_CONFIG_SCHEMA}/object/{APP_CLUSTER_STATUS}"
    requests = [
        Repeated("PUT", known, schema.encode, {403: KNOWN_SCHEMAS}),
        Repeated("PATCH", f"/v1/cluster/{target.cluster}", lambda: NESTED, {422: DEEP_VALUES}),
        Repeated("PATCH", f"/v1/cluster/{target.cluster}", values.encode, {200: WIDE_VALUES}),
    ]
    async with _client(target, headers=token) as http:
        application = await _application(http, schema)
        await asyncio.gather(
            _run_pattern(target, http, application), *(_lane(target, http, each) for each in requests)
        )


async def _application(http: httpx.AsyncClient, schema: str) -> UUID:
    """One of the attacker's own, once its schema is stored: before all else, which may keep the token busy."""
    own = uuid4()
    while True:
        with suppress(httpx.HTTPError):
            await http.post("/v1/object", json={"class": str(CLASS_APPLICATION), "uuid": str(own)})
            if (await http.put(f"/v1/app/{APP_CONFIG_SCHEMA}/object/{own}", content=schema)).is_success:
                return own
        await asyncio.sleep(PAUSE)


async def _run_pattern(target: Target, http: httpx.AsyncClient, application: UUID) -> None:
    while True:
        with suppress(httpx.HTTPError):
            entry = await http.put(f"/v1/app/{application}/object/{target.cluster}", json={"x": PATIENT})
            target.met[PATTERNS] += entry.status_code == 422 and _told(entry, "where") == "/x"
        await asyncio.sleep(PAUSE)


async def signals(target: Target) -> None:
    """Access to Temporal's port: a flood of statuses to one cluster; the first of each sender is too large."""
    handle, numbers = (await _temporal(target)).get_workflow_handle(workflow_id(target.cluster)), count()

    async def send() -> None:
        status: object = TOO_LARGE
        while target.met[SIGNALS] < FLOOD:
            try:
                await handle.signal(SIGNAL_EDGE_STATUS, status)
            except RPCError:
                await asyncio.sleep(PAUSE)
                continue
            target.met[SIGNALS] += 1
            status = {"hosts": [{"hostname": f"flood-{next(numbers)}"}]}

    await asyncio.gather(*(send() for _ in range(SENDERS)))
    await asyncio.Event().wait()


async def _temporal(target: Target) -> Client:
    """Once it can be reached."""
    while True:
        with suppress(RuntimeError):
            return await Client.connect(target.temporal)
        await asyncio.sleep(PAUSE)


async def bulk_writer(target: Target) -> None:
    """A token with ``secrets``: a thousand keys of one Secret at a time."""
    token = {"Authorization": f"Bearer {target.tokens['secrets']}", "Content-Type": "application/json"}
    path = f"/v1/cluster/{target.cluster}/secret"

    def changes(name: str, number: int) -> bytes:
        keys = [
            {"namespace": "siege", "name": "bulk", "key": f"{name}-{key}", "value_base64": f"{number:08d}"}
            for key in range(1_000)
        ]
        return json.dumps({"changes": keys}).encode()

    async with _client(target, headers=token) as http:
        lanes = [
            Repeated(
                "POST",
                path,
                partial(lambda name, of: changes(name, next(of)), name, count()),
                {200: BULKS, 413: LARGE_BULKS},
            )
            for name in ("one", "two")
        ]
        await asyncio.gather(*(_lane(target, http, lane) for lane in lanes))


ATTACKS: dict[str, Attack] = {
    "browser-page": browser_page,
    "spent-token": spent_token,
    "edge": edge,
    "connections": connections,
    "read-token": reader,
    "push-token": pusher,
    "clusters-token": planner,
    "bulk-writer": bulk_writer,
    "signal-flood": signals,
}
"""In the order in which they are played: what follows the last one asks what the flood has left behind."""


@dataclass(frozen=True)
class Repeated:
    """What a lane sends again and again.

    Args:
        shows: status of an answer -> what it counts as.
    """

    method: str
    path: str
    body: Callable[[], bytes]
    shows: Mapping[int, str]


async def _lane(target: Target, http: httpx.AsyncClient, repeated: Repeated) -> None:
    while True:
        with suppress(httpx.HTTPError):
            answer = await http.request(repeated.method, repeated.path, content=repeated.body())
            if what := repeated.shows.get(answer.status_code):
                target.met[what] += 1
        await asyncio.sleep(PAUSE)


def _told(answer: httpx.Response, *names: str) -> object:
    """A field of an answer; None: it has none, or is no JSON."""
    try:
        found = answer.json() if answer.content else None
    except ValueError:
        return None
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _client(
    target: Target, *, headers: dict[str, str] | None = None, auth: httpx.BasicAuth | None = None
) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=target.url,
        headers=headers,
        auth=auth,
        timeout=30,
        trust_env=False,
        transport=httpx.AsyncHTTPTransport(local_address=ADDRESS),
    )


async def _git(where: Path, *arguments: str, given: bytes = b"") -> str:
    """Returns what git says; a refusal is what the attacker expects. Ends its helpers with it."""
    process = await asyncio.create_subprocess_exec(
        "git",
        *arguments,
        cwd=where,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        said, _ = await process.communicate(given)
        return said.decode()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
