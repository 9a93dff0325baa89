"""Bounds of connections when docs/examples/nginx.conf stands before the gateway: real nginx, over TLS."""

import json
import os
import resource
import subprocess
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from bounded_gateway import BoundedGateway
from gateway_centre import EdgeCredentials
from live_gateway import live_gateway
from raw_client import RawClient
from reporting_agent import certificate
from supervised import eventually

from api.connections.limits import ConnectionLimits
from edgewright.agent.holding import LONGEST_WAIT
from edgewright.ports.operators import Permission
from tools.production.certificates import make_certificates
from tools.production.ports import Ports
from tools.production.proxy import proxy_command

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]  # the first test may fetch nginx

LIMITS = ConnectionLimits(overall=96, per_address=8, head_seconds=60.0, trusted_proxies=("127.0.0.1",))
FEW_DESCRIPTORS = 256
OTHERWISE = {
    "worker_processes auto": "worker_processes 1",
    "worker_rlimit_nofile 65536": "worker_rlimit_nofile 2048",
}
DOCUMENTED_PATIENCE = "client_header_timeout 20s"
ITS_OWN_DEADLINES = {"proxy_read_timeout 1h;": "", "proxy_send_timeout 1h;": ""}
"""What leaves nginx the ones that it has by itself: 60 s each."""


@dataclass
class Proxied:
    """A gateway, nginx before it, and an edge. ``url``: nginx's."""

    gateway: BoundedGateway
    url: str
    edge: EdgeCredentials

    def heartbeat(self) -> int:
        """The status of one, over a connection of its own."""
        with httpx.Client(verify=False, trust_env=False, timeout=30) as client:
            answer = client.post(f"{self.url}/v1/agent/heartbeat", headers=self.edge.as_agent, json={})
            return answer.status_code

    def half_a_body(self, source: str, authorization: str) -> RawClient:
        """A registration whose body does not end."""
        client = RawClient(self.url, source=source)
        head = f"Host: localhost\r\nAuthorization: {authorization}\r\nContent-Length: 100\r\n\r\n"
        client.send(f"POST /v1/register HTTP/1.1\r\n{head}{{".encode())
        return client

    def ports(self) -> Ports:
        """Those of one more nginx before the same gateway."""
        port = urlsplit(self.gateway.url).port
        assert port
        return Ports(gateways=(port, port))

    def connections(self) -> int:
        """How many the gateway has."""
        return len(self.gateway.centre.app.state.live.places)


@contextmanager
def nginx(
    folder: Path, ports: Ports, *, patience: str = "2s", changes: Mapping[str, str] | None = None
) -> Iterator[str]:
    """The documented configuration with other ports and deadlines, and few descriptors to begin with.

    Args:
        patience: how long it waits for headers.
        changes: what else in the configuration is replaced, and by what.
    """
    make_certificates(folder)
    (folder / "logs").mkdir()
    libraries, command = proxy_command(folder, ports, print)
    written = folder / "nginx.conf"
    configuration = written.read_text()
    deadline = {DOCUMENTED_PATIENCE: f"client_header_timeout {patience}"}
    for documented, other in {**OTHERWISE, **deadline, **(changes or {})}.items():
        assert documented in configuration
        configuration = configuration.replace(documented, other)
    written.write_text(configuration)
    limited = ["prlimit", f"--nofile={FEW_DESCRIPTORS}:4096", *command]
    url = f"https://127.0.0.1:{ports.proxy}"
    with subprocess.Popen(limited, env={**os.environ, **libraries}, cwd=folder) as running:
        try:
            eventually(lambda: answers(url))
            yield url
        finally:
            running.terminate()
            running.wait(20)


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxied]:
    folder = tmp_path_factory.mktemp("proxied")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    (folder / "gateway").mkdir()
    with live_gateway(folder / "gateway", LIMITS) as live:
        port = urlsplit(live.url).port
        assert port
        edge = live.run(live.centre.register(live.run(live.centre.create("crowded"))))
        with nginx(folder, Ports(gateways=(port, port))) as url:
            yield Proxied(BoundedGateway(live.centre, live.loop, live.url), url, edge)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/ping", verify=False, trust_env=False).is_success
    except httpx.TransportError:
        return False


@pytest.fixture
def registering(proxied: Proxied) -> str:
    live = proxied.gateway
    return f"Bearer {live.run(live.centre.bootstrap_token(proxied.edge.cluster))}"


def test_half_a_body_is_answered_through_the_proxy(proxied: Proxied, registering: str, tmp_path: Path) -> None:
    with (
        proxied.gateway.deadlines(body_seconds=0.5),
        nginx(tmp_path, proxied.ports()) as url,  # no connection of before is used again
    ):
        client = replace(proxied, url=url).half_a_body("127.0.0.100", registering)
        head, _, body = client.read_answer().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    assert json.loads(body)["code"] == "request_timeout"


@pytest.mark.parametrize("sent", [b"", b"GET /ping HTTP/1.1\r\nHost: localhost\r\nX-Half: a"])
def test_unfinished_head_ends_at_the_proxy(proxied: Proxied, sent: bytes) -> None:
    client = RawClient(proxied.url)
    client.send(sent)
    client.read_until_closed()
    assert proxied.heartbeat() == 200


def test_half_a_handshake_ends_at_the_proxy(proxied: Proxied) -> None:
    client = RawClient(proxied.url, secured=False)
    client.send(b"\x16\x03\x01\x02\x00\x01")
    client.read_until_closed()
    assert proxied.heartbeat() == 200


def test_idle_connections_beyond_the_first_limit_of_descriptors_keep_no_edge_away(
    proxied: Proxied, tmp_path: Path
) -> None:
    with ExitStack() as opened:
        url = opened.enter_context(nginx(tmp_path, proxied.ports(), patience="600s"))
        there = replace(proxied, url=url)
        for number in range(3 * FEW_DESCRIPTORS):
            opened.enter_context(closing(RawClient(url, secured=False, source=f"127.0.0.{100 + number % 50}")))
            if number % 100 == 99:
                assert there.heartbeat() == 200
        assert there.heartbeat() == 200


@pytest.mark.parametrize("addresses", [1, 50])
def test_crowd_of_half_bodies_keeps_no_edge_away(proxied: Proxied, registering: str, addresses: int) -> None:
    before = proxied.gateway.refused("made_room")
    with ExitStack() as opened:
        begun = []
        for number in range(100):
            source = f"127.0.0.{100 + number % addresses}"
            begun.append(opened.enter_context(closing(proxied.half_a_body(source, registering))))
            if number % 10 == 9:
                assert proxied.heartbeat() == 200
        eventually(lambda: proxied.gateway.refused("made_room") > before)
        assert proxied.connections() <= LIMITS.overall
        head, _, body = begun[0].read_answer().partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert json.loads(body)["code"] == "too_many_connections"
        assert not begun[-1].is_closed
    assert proxied.heartbeat() == 200


def beat(url: str, edge: EdgeCredentials, **body: Any) -> dict[str, Any]:
    """What an edge is told, over a connection of its own."""
    with httpx.Client(verify=False, trust_env=False, timeout=LONGEST_WAIT + 40) as client:
        answer = client.post(f"{url}/v1/agent/heartbeat", headers=edge.as_agent, json=body)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def test_a_held_heartbeat_is_waited_for_with_the_deadlines_that_nginx_has_by_itself(
    proxied: Proxied, tmp_path: Path
) -> None:
    """One edge waits as long as agents offer; something is wanted of another one meanwhile."""
    gateway = proxied.gateway
    held_beats = gateway.centre.app.state.live.held_beats
    admin = gateway.token(Permission.ADMIN)
    calm, wanted = (
        gateway.run(gateway.centre.register(gateway.run(gateway.centre.create(name)), uid=f"uid-of-{name}"))
        for name in ("calm", "wanted")
    )
    with gateway.client(wanted.as_agent) as agent:
        assert agent.put("/v1/agent/status", json={"kubeseal_cert": certificate()}).is_success
    with nginx(tmp_path, proxied.ports(), changes=ITS_OWN_DEADLINES) as url, ThreadPoolExecutor(2) as pool:

        def wait(edge: EdgeCredentials) -> tuple[dict[str, Any], float]:
            """The answer that is held back, and the seconds until it came."""
            told = beat(url, edge, wait=LONGEST_WAIT)
            known = {"wants_digest": told["wants_digest"], "revisions": told["revisions"]}
            began = time.monotonic()
            return beat(url, edge, wait=LONGEST_WAIT, **known), time.monotonic() - began

        waits, hears = pool.submit(wait, calm), pool.submit(wait, wanted)
        eventually(lambda: len(held_beats) == 2)
        with gateway.client(admin) as operator:
            put = operator.put(f"/v1/cluster/{wanted.cluster}/secret/default/db/password", content=b"s3cret")
        assert put.status_code == 204, put.text
        told, _ = hears.result()
        assert told["revisions"]["self-link"] == put.headers["Edgewright-Commit"]
        assert not waits.done(), "the other edge began to wait before it"
        _, seconds = waits.result()
    assert seconds == pytest.approx(LONGEST_WAIT, abs=8)
