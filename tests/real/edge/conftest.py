"""A centre and a Kubernetes cluster, both real, and the one attached to the other by the bootstrap line.

Each file has its own: real servers that only wait for the next file take processor time from those that work.
"""

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from edge_cluster.agent import NAMESPACE, AgentProcess
from edge_cluster.cluster import Cluster, edge_cluster
from edge_cluster.contents import Contents
from edge_cluster.controllers import SealedSecrets, install_flux
from edge_cluster.desk import push_by_hand
from edge_cluster.grounds import Grounds, grounds_in
from edge_cluster.kubelet import Kubelet
from edge_cluster.site import running_flux
from embedded import SWEEP_SECONDS, EmbeddedEdgewright
from free_ports import free_port
from supervised import eventually

import edgewright.agent

RIGHTS = Path(edgewright.agent.__file__).with_name("rbac.yaml")
LEASE_SECONDS = 15
"""The shortest that heartbeats every 5 s keep: tests wait for the next one."""


@dataclass
class Edge:
    """An edge that is attached to a centre.

    Args:
        uuid: as the centre knows it.
    """

    centre: EmbeddedEdgewright
    cluster: Cluster
    agent: AgentProcess
    uuid: str
    bootstrapped: str

    def shown(self) -> dict[str, Any]:
        """What the centre shows of it."""
        answer = self.centre.api("GET", f"/v1/cluster/{self.uuid}")
        assert answer.status_code == 200, answer.text
        shown: dict[str, Any] = answer.json()
        return shown

    def condition(self, name: str) -> tuple[str, str]:
        """Status and reason."""
        (found,) = [each for each in self.shown()["conditions"] if each["type"] == name]
        return found["status"], found["reason"]

    def message(self, name: str) -> str:
        """The message of a condition."""
        (found,) = [each for each in self.shown()["conditions"] if each["type"] == name]
        message: str = found["message"]
        return message

    def push_by_hand(self, name: str, text: str) -> None:
        """One file in ``by-hand/``, with plain git over HTTP."""
        push_by_hand(self.centre, self.uuid, name, text)

    def is_available(self) -> bool:
        return self.condition("Available")[0] == "True"


def attach(centre: EmbeddedEdgewright, cluster: Cluster, uuid: str, folder: Path) -> str:
    """Pastes the bootstrap line where kubectl reaches the Kubernetes cluster; returns what the script says."""
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    (tools / "kubectl").unlink(missing_ok=True)
    (tools / "kubectl").symlink_to(cluster.kubectl.program)
    line = centre.api("POST", f"/v1/cluster/{uuid}/registration-token").json()["command"]
    done = subprocess.run(
        ["sh", "-c", line],
        env={
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "KUBECONFIG": str(cluster.kubectl.config),
            "EDGEWRIGHT_YES": "1",
            "NO_PROXY": "127.0.0.1",
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def attached() -> Callable[[EmbeddedEdgewright, Cluster, AgentProcess, str, Path], Edge]:
    """Attaches a Kubernetes cluster to a centre."""
    return lambda centre, cluster, agent, uuid, folder: Edge(
        centre, cluster, agent, uuid, attach(centre, cluster, uuid, folder)
    )


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A Kubernetes cluster with Flux, which nobody runs yet, and the rights of the agent."""
    with edge_cluster() as cluster:
        install_flux(cluster)
        cluster.kubectl("create", "namespace", NAMESPACE)
        cluster.kubectl.apply(RIGHTS.read_text())
        yield cluster


@pytest.fixture(scope="module")
def sealed_secrets(cluster: Cluster) -> SealedSecrets:
    """The real controller."""
    controller = SealedSecrets(cluster)
    controller.start()
    return controller


@pytest.fixture(scope="module")
def flux(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubelet]:
    """Flux runs."""
    with running_flux(cluster, tmp_path_factory.mktemp("fetched")) as kubelet:
        yield kubelet


@pytest.fixture(scope="module")
def centre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedEdgewright]:
    """A whole centre, which comes back at the same port: its URL is in the edge's Secret."""
    home = tmp_path_factory.mktemp("centre") / "home"
    variables = {
        "EDGEWRIGHT_DEMO": "0",
        "EDGEWRIGHT_SWEEP_SECONDS": SWEEP_SECONDS,
        "EDGEWRIGHT_GATEWAY_PORT": str(free_port()),
    }
    centre = EmbeddedEdgewright(home, variables)
    centre.up()
    yield centre
    centre.clear_up()


@pytest.fixture(scope="module")
def grounds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grounds]:
    """A Kubernetes cluster of its own, on which edges come and go. Each test leaves it as it was."""
    with grounds_in(tmp_path_factory.mktemp("grounds")) as grounds:
        yield grounds


@pytest.fixture
def before(grounds: Grounds) -> Contents:
    """What is on the cluster before anything of ours is."""
    return grounds.contents()


@pytest.fixture(scope="module")
def edge(
    centre: EmbeddedEdgewright,
    cluster: Cluster,
    sealed_secrets: SealedSecrets,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Edge]:
    """An edge whose agent runs and is heard. Each test leaves it so."""
    wish = {"name": "press-shop", "lease_seconds": LEASE_SECONDS}
    uuid = centre.api("POST", "/v1/cluster", json=wish).json()["uuid"]
    eventually(lambda: centre.is_ready("press-shop"))
    agent = AgentProcess(cluster, sealing_url=sealed_secrets.url)
    agent.start()
    try:
        eventually(lambda: agent.states("attachment") == ["missing"])  # it was there first
        said = attach(centre, cluster, uuid, tmp_path_factory.mktemp("desk"))
        edge = Edge(centre, cluster, agent, uuid, said)
        eventually(edge.is_available)
        yield edge
    finally:
        agent.clear_up()
