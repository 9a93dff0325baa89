"""A factory floor: a Kubernetes cluster on which what is installed also runs."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from components import component
from free_ports import free_port

from edge_cluster.agent import PROGRAM as AGENT_PROGRAM
from edge_cluster.cluster import Cluster, edge_cluster
from edge_cluster.controllers import SealedSecrets
from edge_cluster.helm import Helm
from edge_cluster.helm_release import packed_sealed_secrets
from edge_cluster.kubelet import Kubelet, Program
from edgewright.cli.parts import answers

AGENT, DETACHER = "edgewright-agent", "edgewright-detach"
KUSTOMIZE, SOURCE, HELM = "kustomize-controller", "source-controller", "helm-controller"
"""The ServiceAccounts of what runs there."""
HELM_CONTROLLER = Path(__file__).with_name("helm_controller.py")
"""Stands in for the one that cannot be had: says of each release what helm says of it."""
NOTHING: Mapping[str, str] = {}
LEASES = [f"--leader-election-{name}" for name in ("lease-duration=15s", "renew-deadline=10s", "retry-period=2s")]
"""As Kubernetes' own have them: whoever was killed is followed in a third of the time that Flux takes."""


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
        with Kubelet(cluster, programs(folder, sealed_secrets, agent=agent)) as kubelet:
            yield Site(cluster, kubelet, sealed_secrets)


def programs(
    folder: Path,
    sealed_secrets: SealedSecrets,
    *,
    agent: Sequence[str | Path] = AGENT_PROGRAM,
    of_detacher: Mapping[str, str] = NOTHING,
) -> dict[str, Program]:
    """The real ones of an edge, by their ServiceAccounts.

    Args:
        folder: for what Flux fetches.
        of_detacher: its variables, beside those of its pod; read at each start.
    """
    of_agent = {"EDGEWRIGHT_AGENT_SEALING_URL": sealed_secrets.url, "EDGEWRIGHT_AGENT_LOOK_SECONDS": "1"}
    return {
        AGENT: Program(agent, of_agent),
        DETACHER: Program([sys.executable, "-P", "-m", "edgewright.agent.detacher"], of_detacher),
        **flux_programs(folder),
    }


def flux_programs(folder: Path) -> dict[str, Program]:
    """Those of Flux alone, with a stand-in for helm-controller.

    Args:
        folder: for what it fetches; it is made.
    """
    folder.mkdir(exist_ok=True)
    helm = component("helm")
    with TemporaryDirectory(dir=folder.parent) as home:
        packing = Helm(helm, Path(home) / "nobody", Path(home))
        sealed_secrets = packed_sealed_secrets(packing, folder.with_name(f"{folder.name}-charts"))
    archives = f"127.0.0.1:{free_port()}"
    storage = [f"--storage-path={folder}", f"--storage-addr={archives}", f"--storage-adv-addr={archives}"]
    return {
        SOURCE: Program(
            [component(SOURCE)],
            options=[*_addresses(), *LEASES, "--events-addr=", *storage],
            ready=lambda: answers(f"http://{archives}/"),
        ),
        KUSTOMIZE: kustomize_program(),
        HELM: Program([sys.executable, "-P", HELM_CONTROLLER, "--helm", helm, "--dependency", sealed_secrets]),
    }


def kustomize_program() -> Program:
    """kustomize-controller at addresses of its own: in pods, two of them may listen at the same ports."""
    health = f"127.0.0.1:{free_port()}"
    options = [*_addresses(health), *LEASES, "--events-addr="]
    return Program([component(KUSTOMIZE)], options=options, ready=lambda: answers(f"http://{health}/readyz"))


@contextmanager
def running_flux(cluster: Cluster, folder: Path) -> Iterator[Kubelet]:
    """Runs the pods of Flux on a cluster where it is installed, until the end of the context; no others.

    Args:
        folder: for what it fetches.
    """
    with Kubelet(cluster, flux_programs(folder)) as kubelet:
        yield kubelet


def _addresses(health: str | None = None) -> Sequence[str]:
    metrics, probed = f"127.0.0.1:{free_port()}", health or f"127.0.0.1:{free_port()}"
    return [f"--metrics-addr={metrics}", f"--health-addr={probed}"]
