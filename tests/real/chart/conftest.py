"""The chart that edges get, as a centre publishes it, and the real helm on a real Kubernetes cluster."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from components import component
from edge_cluster.chart_release import HOME
from edge_cluster.cluster import Cluster, edge_cluster
from edge_cluster.helm import Helm
from edge_cluster.helm_release import checked_out_chart, packed_sealed_secrets

from edgewright.adapters.chart_publisher import charts_path, publish_charts
from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.sealed_secrets_chart import SealedSecretsChart

Published = Callable[[SealedSecretsChart], Path]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A Kubernetes cluster on which nobody has installed anything."""
    with edge_cluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def helm_program() -> Path:
    return component("helm")


@pytest.fixture
def helm(cluster: Cluster, helm_program: Path, tmp_path: Path) -> Helm:
    return Helm(helm_program, cluster.kubectl.config, tmp_path / "helm")


@pytest.fixture(scope="session")
def archive(helm_program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Upstream's own chart, packed."""
    folder = tmp_path_factory.mktemp("upstream")
    return packed_sealed_secrets(Helm(helm_program, folder / "none", folder / "helm"), folder)


@pytest.fixture
def published(tmp_path: Path) -> Published:
    """Publishes the charts, and returns the folder of the one that clusters get, as an edge has it after a fetch."""

    def publish(sealed_secrets: SealedSecretsChart) -> Path:
        git = BareGitServer(tmp_path / "repositories")
        head = publish_charts(git, charts_path(), sealed_secrets)
        return checked_out_chart(git, tmp_path / head)

    return publish


@pytest.fixture(autouse=True)
def home(cluster: Cluster) -> None:
    if cluster.find("namespace", HOME) is None:
        cluster.kubectl("create", "namespace", HOME)
