"""Where edges are attached and let go: a centre that gives Flux and an agent, a Kubernetes cluster, a kubelet.

The agent, the detacher and Flux's controllers are the real programs, each under the ServiceAccount that the
bootstrap line has made, and each for as long as its pod is there.
"""

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from embedded import SWEEP_SECONDS, EmbeddedEdgewright
from flux_file import sha256_of
from free_ports import free_port
from loopback import PLAIN
from supervised import eventually

from edge_cluster.cluster import Cluster, edge_cluster
from edge_cluster.contents import Comparison, Contents, contents
from edge_cluster.controllers import SEALED_SECRETS_NAMESPACE, SealedSecrets
from edge_cluster.desk import push_by_hand
from edge_cluster.kubelet import Kubelet, Program
from edge_cluster.line import BootstrapLine
from edge_cluster.release import release
from edge_cluster.site import AGENT, programs
from edgewright.domain.wellknown import APP_CLUSTER_STATUS

IMAGE = "registry.example.com/edgewright:test"
NAMESPACE = "edgewright"
LEASE_SECONDS = 15
LETTING_GO = 180.0
"""Seconds: garbage is collected in Kubernetes' own time."""


@dataclass
class Grounds:
    """What all tests that let edges go share."""

    cluster: Cluster
    centre: EmbeddedEdgewright
    kubelet: Kubelet
    folder: Path
    variables: dict[str, str]
    """What the detacher gets on top of its own variables, from its next start on."""
    programs: dict[str, Program]
    """What the kubelet runs; an image that is added here runs another program than its account."""

    def contents(self) -> Contents:
        """Everything that the API server holds, but what sealed-secrets keeps for itself."""
        return {key: one for key, one in contents(self.cluster).items() if _is_compared(key)}

    def comparison(self, before: Contents) -> Comparison:
        """Whether all of that is as it was before."""
        return Comparison(self.cluster, before, counts=_is_compared)

    def attach(self, name: str, *, by_hand: bool = False, **wish: Any) -> "GroundsCluster":
        """Creates a cluster, pastes its line, or does by hand what that does, and waits until the edge is heard."""
        body = {"name": name, "lease_seconds": LEASE_SECONDS, **wish}
        answer = self.centre.api("POST", "/v1/cluster", json=body)
        assert answer.status_code == 201, answer.text
        eventually(lambda: self.centre.is_ready(name))
        attached = GroundsCluster(self, str(answer.json()["uuid"]))
        attached.paste(by_hand=by_hand)
        return attached


@dataclass
class GroundsCluster:
    """One cluster whose edge is the one of the grounds."""

    grounds: Grounds
    uuid: str

    def paste(self, *, by_hand: bool = False) -> None:
        """Pastes its line; returns when the edge is heard and has told its certificate."""
        line = BootstrapLine(self.grounds.centre, self.grounds.cluster, self.uuid, self.grounds.folder)
        done = line.by_hand() if by_hand else line.run()
        assert done.returncode == 0, done.stdout + done.stderr
        eventually(lambda: self.condition("Available")[0] == "True", seconds=LETTING_GO)
        eventually(lambda: self.condition("SealingKeyCurrent")[0] == "True", seconds=LETTING_GO)

    def api(self, method: str, path: str = "", **options: Any) -> httpx.Response:
        return self.grounds.centre.api(method, f"/v1/cluster/{self.uuid}{path}", **options)

    def status(self) -> dict[str, Any]:
        """What the edge says of itself; nothing yet: empty."""
        answer = self.grounds.centre.api("GET", f"/v1/app/{APP_CLUSTER_STATUS}/object/{self.uuid}")
        return dict(answer.json()) if answer.is_success else {}

    def program(self, name: str) -> str | None:
        """The version of a program on the edge, as it says."""
        versions: dict[str, str] = self.status().get("versions", {})
        return versions.get(name)

    def upgrade(self, component: str) -> dict[str, Any]:
        """Begins an upgrade to what the centre offers."""
        answer = self.api("POST", "/upgrade", json={"component": component})
        assert answer.status_code == 202, answer.text
        return dict(answer.json())

    def last_upgrade(self) -> dict[str, Any]:
        """What the centre tells of it."""
        [found] = self.grounds.centre.api("GET", "/v1/upgrade", params={"cluster": self.uuid}).json()["items"]
        return dict(found)

    def condition(self, name: str) -> tuple[str, str]:
        """Status and reason."""
        answer = self.api("GET")
        assert answer.status_code == 200, answer.text
        found: dict[str, tuple[str, str]] = {
            each["type"]: (each["status"], each["reason"]) for each in answer.json()["conditions"]
        }
        return found[name]

    def message(self, name: str) -> str:
        """The message of a condition."""
        return next(str(each["message"]) for each in self.api("GET").json()["conditions"] if each["type"] == name)

    def delete(self, **parameters: str) -> None:
        answer = self.api("DELETE", params=parameters)
        assert answer.status_code == 202, answer.text

    def is_gone(self) -> bool:
        """Whether the centre has ended its deletion."""
        return self.api("GET").status_code == 410

    def events(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.api("GET", "/timeline", params={"limit": 500}).json()["items"]
        return items

    def kinds(self) -> list[str]:
        """The kinds of its events, in order."""
        return [each["kind"] for each in self.events()]

    def order(self) -> str:
        """What the agent would be asked: none, that nothing is left, or to detach."""
        steps = {step["name"]: step["state"] for step in self.api("GET").json()["steps"]}
        return next((name for name, state in steps.items() if state == "running"), "")

    def push(self, name: str, text: str) -> None:
        push_by_hand(self.grounds.centre, self.uuid, name, text)

    def put_secret(self, namespace: str, name: str, value: bytes) -> None:
        answer = self.api("PUT", f"/secret/{namespace}/{name}/password", content=value)
        assert answer.status_code == 204, answer.text

    def password(self) -> str:
        """The agent's, as it is on the edge."""
        held = self.grounds.cluster.find("secret", AGENT, namespace=NAMESPACE)
        return base64.b64decode(held["data"]["password"]).decode()

    def heartbeat(self, password: str) -> httpx.Response:
        """As the agent, with that password."""
        url = f"{self.grounds.centre.endpoints()['gateway']}/v1/agent/heartbeat"
        return httpx.post(url, auth=(self.uuid, password), json={}, **PLAIN)

    def put_status(self, password: str) -> int:
        """What the centre answers to a status of the agent."""
        url = f"{self.grounds.centre.endpoints()['gateway']}/v1/agent/status"
        return httpx.put(url, auth=(self.uuid, password), json={}, **PLAIN).status_code


def _is_compared(key: str) -> bool:
    return not key.startswith(f"Secret/{SEALED_SECRETS_NAMESPACE}/sealed-secrets-key")


def give_flux(centre: EmbeddedEdgewright, file: bytes, **options: str) -> None:
    """Imports a release."""
    imported = centre.api("PUT", "/v1/flux", params={"sha256": sha256_of(file), **options}, content=file)
    assert imported.status_code == 200, imported.text


@contextmanager
def grounds_in(folder: Path, *, flux: bytes | None = None) -> Iterator[Grounds]:
    """The grounds, until the end of the context.

    Args:
        flux: the release that the centre gives to edges; None: Flux's own.
    """
    variables = {
        "EDGEWRIGHT_DEMO": "0",
        "EDGEWRIGHT_SWEEP_SECONDS": SWEEP_SECONDS,
        "EDGEWRIGHT_GATEWAY_PORT": str(free_port()),
        "EDGEWRIGHT_AGENT_IMAGE": IMAGE,
    }
    centre = EmbeddedEdgewright(folder / "home", variables)
    with edge_cluster() as cluster:
        sealed_secrets, of_detacher = SealedSecrets(cluster), dict[str, str]()
        try:
            centre.up()
            give_flux(centre, flux or release())
            sealed_secrets.start()
            running = programs(folder / "fetched", sealed_secrets, of_detacher=of_detacher)
            with Kubelet(cluster, running) as kubelet:
                yield Grounds(cluster, centre, kubelet, folder, of_detacher, running)
        finally:
            centre.clear_up()


def told_by(grounds: Grounds, account: str) -> list[dict[str, Any]]:
    """What a program has logged, as far as it is whole lines of JSON."""
    lines = grounds.kubelet.log(account).splitlines()
    return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
