"""A factory floor: a Kubernetes cluster on which what is installed also runs."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from components import component
from free_ports import free_port

from edge_cluster.agent import PROGRAM as AGENT_PROGRAM
from edge_cluster.cluster import Cluster, edge_cluster
from edge_cluster.controllers import SealedSecrets
from edge_cluster.kubelet import Kubelet, Program
from edge_cluster.source_controller import SourceController

AGENT, DETACHER = "edgewright-agent", "edgewright-detach"
KUSTOMIZE, SOURCE = "kustomize-controller", "source-controller"
"""The ServiceAccounts of what runs there."""
NOTHING: Mapping[str, str] = {}


@dataclass
class Site:
    """A Kubernetes cluster whose pods of Flux and of the agent run as soon as somebody installs them."""

    cluster: Cluster
    kubelet: Kubelet
    sealed_secrets: SealedSecrets

    def install_chart(self) -> None:
        """What helm-controller, which cannot be had, would do with the release of the cluster's chart; once."""
        if self.cluster.supervisor.pid_of("sealed-secrets") is None:
            self.sealed_secrets.start()


@contextmanager
def site(folder: Path, *, agent: Sequence[str | Path] = AGENT_PROGRAM) -> Iterator[Site]:
    """A site, until the end of the context.

    Args:
        folder: for what Flux fetches.
        agent: the program that runs in the agent's pod.
    """
    with edge_cluster() as cluster:
        sealed_secrets = SealedSecrets(cluster)
        source = Program(["sh", "-c", "exec sleep infinity"])  # ``SourceController`` does its work
        with Kubelet(cluster, {**programs(sealed_secrets, agent=agent), SOURCE: source}) as kubelet:
            sources = SourceController(
                cluster, folder, runs=lambda: kubelet.runs(SOURCE), variables=lambda: kubelet.environment(SOURCE)
            )
            with sources:
                yield Site(cluster, kubelet, sealed_secrets)


def programs(
    sealed_secrets: SealedSecrets,
    *,
    agent: Sequence[str | Path] = AGENT_PROGRAM,
    of_detacher: Mapping[str, str] = NOTHING,
) -> dict[str, Program]:
    """The real ones of an edge, by their ServiceAccounts.

    Args:
        of_detacher: its variables, beside those of its pod; read at each start.
    """
    of_agent = {"EDGEWRIGHT_AGENT_SEALING_URL": sealed_secrets.url, "EDGEWRIGHT_AGENT_LOOK_SECONDS": "1"}
    addresses = [f"--{kind}-addr=127.0.0.1:{free_port()}" for kind in ("metrics", "health")]
    return {
        AGENT: Program(agent, of_agent),
        DETACHER: Program([sys.executable, "-P", "-m", "edgewright.agent.detacher"], of_detacher),
        KUSTOMIZE: Program([component(KUSTOMIZE), *addresses]),
    }
