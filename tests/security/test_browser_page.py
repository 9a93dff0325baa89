"""What a page in a browser on the centre's machine can send, sent to every port that `edgewright up` opens.

A page may send any body as text/plain to any port. With DNS rebinding it reads answers too, and takes cookies and
tokens from them, as long as whoever answers takes the page's own name for its own.
"""

import asyncio
import base64
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import psutil
import pytest
from embedded import EmbeddedEdgewright
from temporalio.api.batch.v1 import BatchOperationInfo
from temporalio.api.workflowservice.v1 import ListBatchOperationsRequest
from temporalio.client import Client

from edgewright.cli.ports import BLOCKED

pytestmark = pytest.mark.timeout(300)

PAGE = "attacker.example"
NOBODYS = 'WorkflowId="nobody"'
"""A query that finds no workflow: the control shows that an attack would have been taken, and does no harm."""


@dataclass(frozen=True)
class Door:
    """One listening socket."""

    address: str
    port: int

    @property
    def url(self) -> str:
        return f"http://{self.address}:{self.port}"

    @property
    def browsers_go_there(self) -> bool:
        return self.port not in BLOCKED


@pytest.fixture(scope="module")
def centre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedEdgewright]:
    """One with the cluster `demo`."""
    centre = EmbeddedEdgewright(tmp_path_factory.mktemp("centre") / "home")
    try:
        centre.up()
        yield centre
    finally:
        centre.clear_up()


@pytest.fixture(scope="module")
def doors(centre: EmbeddedEdgewright) -> list[Door]:
    """Every listening TCP socket of every process of `up`."""
    assert centre.running
    root = psutil.Process(centre.running.pid)
    sockets = [s for process in (root, *root.children(recursive=True)) for s in process.net_connections("tcp")]
    found = [Door(s.laddr.ip, s.laddr.port) for s in sockets if s.status == psutil.CONN_LISTEN]
    assert {door.port for door in found} >= {
        httpx.URL(centre.endpoints()[n]).port for n in ("gateway", "temporal_ui")
    }
    return found


def test_no_page_in_a_browser_changes_anything(centre: EmbeddedEdgewright, doors: list[Door]) -> None:
    reachable = [door for door in doors if door.browsers_go_there]
    before = state(centre)
    taken = [door.url for door in reachable for attack in attacks(centre) if is_taken(door, *attack)]
    assert taken == []
    assert state(centre) == before


async def test_no_page_in_a_browser_starts_a_batch_of_temporals(
    centre: EmbeddedEdgewright, doors: list[Door]
) -> None:
    for door in doors:
        if door.browsers_go_there:
            for attack in attacks(centre):
                is_taken(door, *attack)
    assert await batches(centre) == []
    [hidden] = [door for door in doors if not door.browsers_go_there]
    assert is_taken(hidden, *batch(NOBODYS)), "the control: where no browser goes, the same attack is taken"
    async with asyncio.timeout(60):  # the list follows
        while len(await batches(centre)) != 1:
            await asyncio.sleep(0.1)


def test_http_api_of_the_server_refuses_every_route(doors: list[Door]) -> None:
    [(api, routes)] = [(door, routes) for door in doors if door.browsers_go_there and (routes := documented(door))]
    assert len(routes) > 100
    answers = {
        (method, path): httpx.request(
            method.upper(),
            api.url + path.replace("{namespace}", "default").replace("{", "").replace("}", ""),
            headers={"Content-Type": "text/plain"},
            content=b"{}" if method != "get" else None,
            trust_env=False,
        ).status_code
        for path, methods in routes.items()
        for method in methods
    }
    assert {route: answer for route, answer in answers.items() if answer != 403} == {}


@pytest.mark.parametrize("path", ["/", "/namespaces/default/workflows", "/api/v1/namespaces"])
def test_web_ui_answers_under_its_own_name_only(centre: EmbeddedEdgewright, path: str) -> None:
    url = centre.endpoints()["temporal_ui"] + path
    port = httpx.URL(url).port
    with httpx.Client(trust_env=False) as client:
        for name in ("127.0.0.1", "localhost"):
            answer = client.get(url, headers={"Host": f"{name}:{port}"})
            assert answer.status_code == 200
            assert answer.headers["x-frame-options"] == "DENY"
        for name in (PAGE, f"{PAGE}:{port}", f"127.0.0.1.{PAGE}:{port}", "", "["):
            assert client.get(url, headers={"Host": name}).status_code == 403
        foreign = {"Origin": f"http://{PAGE}", "Sec-Fetch-Site": "cross-site"}
        assert client.get(url, headers=foreign).status_code == 403


def test_person_at_the_web_ui_signals_as_before(centre: EmbeddedEdgewright) -> None:
    url = httpx.URL(centre.endpoints()["temporal_ui"])
    with httpx.Client(base_url=url, trust_env=False) as client:
        token = client.get("/").cookies["_csrf"]
        workflow = f"/api/v1/namespaces/default/workflows/cluster-{uuid_of_demo(centre)}/signal/reconcile"
        signalled = client.post(
            workflow, headers={"X-CSRF-Token": token, "Origin": f"{url.scheme}://{url.netloc.decode()}"}, json={}
        )
        assert signalled.status_code == 200, signalled.text


def attacks(centre: EmbeddedEdgewright) -> list[tuple[str, dict[str, Any]]]:
    """Paths and bodies."""
    uuid = uuid_of_demo(centre)
    signal = f"/api/v1/namespaces/default/workflows/cluster-{uuid}/signal"
    return [
        batch('WorkflowType="ManagedCluster"'),
        (f"{signal}/delete", {"input": payloads({"force": True})}),
        (f"{signal}/edge_status", {"input": payloads({"kubeseal_cert": "of somebody else"})}),
        ("/namespaces/default/nexus/callback", {}),
        ("/nexus/callback", {}),
        (f"/v1/cluster/{uuid}", {"force": True}),
    ]


def batch(query: str) -> tuple[str, dict[str, Any]]:
    """A batch of Temporal's that deletes what a query finds."""
    name = f"page-{time.monotonic_ns()}"
    delete = {"signal": "delete", "input": payloads({"force": True})}
    body = {
        "jobId": name,
        "visibilityQuery": query,
        "reason": "page",
        "signalOperation": delete,
        "namespace": "default",
    }
    return f"/api/v1/namespaces/default/batch-operations/{name}", body


def payloads(value: dict[str, Any]) -> dict[str, Any]:
    encoded = base64.b64encode(json.dumps(value).encode()).decode()
    return {"payloads": [{"metadata": {"encoding": "anNvbi9wbGFpbg=="}, "data": encoded}]}  # json/plain


def is_taken(door: Door, path: str, body: dict[str, Any]) -> bool:
    """Whether one of the ways in which a page sends something is answered with success."""
    content = json.dumps(body).encode()
    posted = {"Content-Type": "text/plain", "Origin": f"http://{PAGE}", "Sec-Fetch-Site": "cross-site"}
    with httpx.Client(base_url=door.url, trust_env=False, timeout=10) as client:
        try:
            answers = [client.post(path, content=content, headers=posted)]
            # After rebinding its name the page speaks to us as to its own site.
            own = {"Host": f"{PAGE}:{door.port}"}
            token = client.get("/api/v1/namespaces", headers=own).cookies.get("_csrf") or ""
            own |= {"Origin": f"http://{PAGE}:{door.port}", "Sec-Fetch-Site": "same-origin", "X-CSRF-Token": token}
            own |= {"Cookie": f"_csrf={token}", "Content-Type": "application/json"}
            answers.append(client.post(path, content=content, headers=own))
        except httpx.TransportError:
            return False  # gRPC: whoever sends HTTP/1.1 is hung up on
    return any(answer.is_success for answer in answers)


def documented(door: Door) -> dict[str, Any]:
    """The routes of Temporal's HTTP API, if it is what listens there: path -> methods."""
    try:
        document = httpx.get(f"{door.url}/swagger.json", trust_env=False).json()
        return dict(document["paths"])
    except (httpx.TransportError, ValueError, KeyError):
        return {}


def uuid_of_demo(centre: EmbeddedEdgewright) -> str:
    return str(centre.api("GET", "/v1/cluster", params={"name": "demo"}).json()["items"][0]["uuid"])


def state(centre: EmbeddedEdgewright) -> tuple[Any, ...]:
    """What an attack would have changed: the cluster as it is shown, and its timeline."""
    uuid = uuid_of_demo(centre)
    shown = centre.api("GET", f"/v1/cluster/{uuid}").json()
    timeline = centre.api("GET", f"/v1/cluster/{uuid}/timeline").json()
    return shown["phase"], shown["certificate"], timeline["items"]


async def batches(centre: EmbeddedEdgewright) -> list[BatchOperationInfo]:
    client = await Client.connect(centre.endpoints()["temporal"])
    listed = await client.workflow_service.list_batch_operations(ListBatchOperationsRequest(namespace="default"))
    return list(listed.operation_info)
