"""`up --share`: an edge on another machine gets in by the line alone, and nobody else does."""

import json
import re
import subprocess
from base64 import b64decode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest
from another_machine import CENTRE, TwoMachines
from edge_machine import EdgeMachine
from embedded import PROGRAM, EmbeddedEdgewright
from supervised import eventually

from edgewright.cli.share.authority import ensure_certificates

pytestmark = pytest.mark.timeout(400)

SECOND = "10.213.7.9"
"""Another address of the centre's machine."""


@dataclass
class SharedCentre(EmbeddedEdgewright):
    """On a machine of its own."""

    machines: TwoMachines = field(default_factory=TwoMachines)
    arguments: Sequence[str] = ()

    @property
    def within(self) -> list[str]:
        return self.machines.on_centre

    @property
    def up_arguments(self) -> Sequence[str]:
        return self.arguments

    def command(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return run([*self.within, *PROGRAM, *arguments], self.environment | variables)

    def start(self, *arguments: str) -> None:
        self.arguments = arguments
        self.up()

    def line(self, cluster: str) -> str:
        """The line that attaches a cluster, as it is printed for people."""
        printed = self.command("cluster", "bootstrap", cluster)
        assert printed.returncode == 0, printed.stderr
        return next(line for line in printed.stdout.splitlines() if "curl" in line)

    def findings(self) -> dict[str, dict[str, str]]:
        return {check["name"]: check for check in json.loads(self.command("doctor", "--json").stdout)}


def run(command: Sequence[str], environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture
def machines() -> Iterator[TwoMachines]:
    with TwoMachines() as machines:
        yield machines


@pytest.fixture
def centre(tmp_path: Path, machines: TwoMachines) -> Iterator[SharedCentre]:
    centre = SharedCentre(tmp_path / "home", {"EDGEWRIGHT_DEMO": "0"}, machines=machines)
    yield centre
    centre.clear_up()


def test_an_edge_on_another_machine_attaches_by_the_printed_line_alone(
    centre: SharedCentre, machines: TwoMachines, tmp_path: Path
) -> None:
    centre.start("--share", CENTRE)
    url = centre.endpoints()["external_url"]
    assert re.fullmatch(rf"https://{CENTRE}:\d+", url)
    assert f"edges use    {url}\n" in centre.said()
    created = centre.command("cluster", "create", "press-shop", "--wait")
    assert created.returncode == 0, f"the local command line trusts the home's authority: {created.stderr}"

    line = centre.line("press-shop")
    fetch = line.removesuffix(" | sh -")
    script = run([*machines.on_edge, "sh", "-c", fetch])
    assert (script.returncode, script.stdout.splitlines()[0]) == (0, "#!/bin/sh"), script.stderr
    without = run([*machines.on_edge, "sh", "-c", fetch.partition(" | ")[2].replace(" --cacert /dev/stdin", "")])
    assert (without.returncode, without.stdout) == (60, ""), (
        "curl's exit code for a certificate that it does not trust"
    )

    edge = EdgeMachine(tmp_path / "edge", uid="5d3c0f0a-6c3e-4c61-9c7e-0a54b1f0aa01", within=machines.on_edge)
    attached = edge.type(line, EDGEWRIGHT_YES="1")
    assert attached.returncode == 0, attached.stdout + attached.stderr
    shown = json.loads(centre.command("cluster", "show", "press-shop", "--json").stdout)
    assert shown["phase"] != "AwaitingBootstrap"
    kept = edge.objects["Secret/edgewright/edgewright-agent"]["data"]
    assert b64decode(kept["url"]).decode() == url
    assert b64decode(kept["ca.crt"]).decode() == (centre.home / "authority.pem").read_text()

    findings = centre.findings()
    assert (findings["from outside"]["verdict"], findings["external URL"]["verdict"]) == ("ok", "ok")
    for secret in ("authority.key", "server.pem"):
        key = (centre.home / secret).read_text().partition("-----BEGIN PRIVATE KEY-----\n")[2].splitlines()[0]
        assert key not in centre.logs() + centre.said() + line + edge.calls.decode()

    assert centre.interrupt() == 0
    refused = centre.command("up", "--no-share")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "1 edge reaches this centre in a way that ends now: press-shop" in refused.stderr
    assert centre.children() == {}
    centre.start()
    assert centre.endpoints()["external_url"] == url, "nothing was changed"


def test_only_the_gateway_is_reached_from_the_other_machine(centre: SharedCentre, machines: TwoMachines) -> None:
    centre.start("--share", CENTRE)
    endpoints = centre.endpoints()
    ports = json.loads((centre.home / "ports.json").read_text())
    assert len(ports) >= 4

    def answers(port: int) -> bool:
        """Whether a connection from the edge's machine is taken."""
        tried = run(
            [*machines.on_edge, "curl", "-sS", "--connect-timeout", "3", f"telnet://{CENTRE}:{port}", "-m", "3"]
        )
        return tried.returncode != 7

    assert {name: answers(port) for name, port in ports.items()} == {
        name: name == "EDGEWRIGHT_GATEWAY_PORT" for name in ports
    }
    assert endpoints["temporal"].startswith("127.0.0.1:")


def test_the_choice_is_remembered_moved_and_taken_back(centre: SharedCentre, machines: TwoMachines) -> None:
    run([*machines.on_centre, "ip", "addr", "add", f"{SECOND}/24", "dev", "centre"])
    centre.start("--share", CENTRE)
    authority = (centre.home / "authority.pem").read_text()
    assert centre.interrupt() == 0
    centre.start()
    assert centre.endpoints()["external_url"].startswith(f"https://{CENTRE}:")
    port = centre.endpoints()["external_url"].rpartition(":")[2]
    assert centre.interrupt() == 0

    centre.start("--share", SECOND)
    assert centre.endpoints()["external_url"] == f"https://{SECOND}:{port}"
    assert (centre.home / "authority.pem").read_text() == authority
    bundle = ["--cacert", str(centre.home / "authority.pem")]
    for address in (CENTRE, SECOND):  # an edge that uses the former address can still ask where to go
        asked = run([*machines.on_edge, "curl", "-sS", *bundle, f"https://{address}:{port}/ping"])
        assert asked.returncode == 0, asked.stderr
    assert centre.interrupt() == 0

    centre.start("--no-share")
    assert centre.endpoints()["gateway"].startswith("http://127.0.0.1:")
    assert "only from this machine" in centre.said()
    refused = run([*machines.on_edge, "curl", "-sS", *bundle, f"https://{SECOND}:{port}/ping"])
    assert refused.returncode == 7, "nobody listens there"


def test_a_certificate_is_renewed_while_the_gateway_runs(centre: SharedCentre, machines: TwoMachines) -> None:
    centre.start("--share", CENTRE)
    url = centre.endpoints()["external_url"]
    gateway = centre.children()["gateway"]

    def shown() -> str:
        asked = ["openssl", "s_client", "-connect", url.removeprefix("https://"), "-showcerts"]
        told = run([*machines.on_edge, *asked])
        return told.stdout.partition("-----BEGIN")[2].partition("-----END")[0]

    before = shown()
    assert before
    (centre.home / "server.pem").unlink()
    ensure_certificates(centre.home, [CENTRE], datetime.now(UTC))  # as `up` does once an hour, when it is due
    eventually(lambda: shown() not in {before, ""})
    assert centre.children()["gateway"] == gateway
