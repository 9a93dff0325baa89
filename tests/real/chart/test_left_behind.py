"""What a cluster's release leaves on its edge, who takes it away, and who goes on with its keys."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

import pytest
import yaml
from edge_cluster.chart_release import HOME, Release, deployment, opened, options, sealed
from edge_cluster.contents import contents
from edge_cluster.controllers import SealedSecrets
from edge_cluster.line import BootstrapLine
from embedded import EmbeddedEdgewright
from free_ports import free_port
from sealing_workloads import CONTROLLERS, NO_CONTROLLERS
from supervised import eventually

from edgewright.adapters.sealed_secrets_chart import SealedSecretsChart
from edgewright.bootstrap import render_uninstall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from edge_cluster.cluster import Cluster
    from edge_cluster.helm import Helm

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]


def taken_away(cluster: Cluster, folder: Path, *options: str, code: int = 0) -> str:
    """What the script of ``edgewright cluster uninstall-script`` says when it has ended with ``code``."""
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    (tools / "kubectl").unlink(missing_ok=True)
    (tools / "kubectl").symlink_to(cluster.kubectl.program)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["/bin/sh", "-s", "--", "--yes", *options],
        input=render_uninstall(),
        env={**os.environ, "PATH": path, "KUBECONFIG": str(cluster.kubectl.config)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_release_that_an_earlier_life_has_left_gives_way_to_the_next_with_the_same_keys(
    cluster: Cluster, helm: Helm, published: Callable[[SealedSecretsChart], Path], archive: Path, tmp_path: Path
) -> None:
    by_kubernetes = {f"ConfigMap/{HOME}/kube-root-ca.crt", f"ServiceAccount/{HOME}/default"}
    eventually(lambda: by_kubernetes <= contents(cluster).keys())
    chart, before = published(SealedSecretsChart(archive.as_uri())), contents(cluster)
    older, newer = Release(helm, tmp_path), Release(helm, tmp_path, uuid=uuid4())
    older.installed(chart)
    controller = SealedSecrets(cluster, options=options(cluster), installed=True)
    controller.start()
    [key] = controller.keys()
    cluster.kubectl.apply(sealed(controller, "kept", "of an earlier life"))
    eventually(lambda: opened(cluster, "kept") == "of an earlier life")
    kept = contents(cluster)
    taken_away(cluster, tmp_path, "--keep-releases")
    assert contents(cluster).keys() == kept.keys()
    assert "sealed-secrets already" in newer.refused(chart)
    taken_away(cluster, tmp_path, "--leftovers", "--cluster", older.name.removeprefix("edge-cluster-"))
    assert contents(cluster).keys() == kept.keys(), "a cluster's own release is no leftover"

    said = taken_away(cluster, tmp_path, "--leftovers", "--cluster", newer.name.removeprefix("edge-cluster-"))
    assert f"The Helm release {older.name} is gone" in said
    assert deployment(cluster) is None and cluster.find("configmap", "edgewright-cluster", namespace=HOME) is None
    newer.installed(chart)
    controller.restart()
    assert controller.keys() == [key]
    cluster.kubectl("delete", "secret", "kept")
    eventually(lambda: opened(cluster, "kept") == "of an earlier life")

    said = taken_away(cluster, tmp_path)
    assert f"The Helm release {newer.name} is gone" in said and "--purge takes them" in said
    assert opened(cluster, "kept") == "of an earlier life" and controller.keys() == [key]
    kubectl = cluster.kubectl
    kubectl("create", "deployment", "theirs", "--replicas=0", "--image=mirror.example/sealed-secrets-controller:1")
    assert "not Edgewright's: default/theirs." in taken_away(cluster, tmp_path, "--purge", code=6)
    kubectl("delete", "deployment", "theirs")
    assert "by the cluster's repository" in taken_away(cluster, tmp_path, "--purge", "--dry-run", code=6)
    assert opened(cluster, "kept") == "of an earlier life" and controller.keys() == [key]
    kubectl("label", "sealedsecret", "kept", "kustomize.toolkit.fluxcd.io/name=edge-secrets")
    assert "keys are gone" in taken_away(cluster, tmp_path, "--purge")
    assert opened(cluster, "kept") is None
    eventually(lambda: contents(cluster).keys() <= before.keys())


def test_a_purge_knows_a_controller_by_what_makes_it_one(cluster: Cluster, tmp_path: Path) -> None:
    def deployed(described: Iterable[str]) -> str:
        """The Deployments, each under a name of its own; what the script says of their namespace's."""
        named = [yaml.safe_load(one) for one in described]
        for number, one in enumerate(named):
            one["metadata"]["name"] = f"theirs-{number}"
        cluster.kubectl.apply(yaml.safe_dump_all(named))
        said = taken_away(cluster, tmp_path, "--purge", "--dry-run", code=6 if described is controllers else 0)
        cluster.kubectl("delete", "deployments", "--all", "--namespace", "tools")
        return said

    controllers, others = CONTROLLERS.values(), NO_CONTROLLERS.values()
    cluster.kubectl("create", "namespace", "tools")
    named = " ".join(f"tools/theirs-{number}" for number in range(len(controllers)))
    assert f"not Edgewright's: {named}." in deployed(controllers)
    assert "would go" in deployed(others)
    cluster.kubectl("delete", "namespace", "tools")


@pytest.fixture(scope="module")
def centre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedEdgewright]:
    """A centre that gives neither Flux nor an agent: here helm does what helm-controller would."""
    variables = {"EDGEWRIGHT_DEMO": "0", "EDGEWRIGHT_GATEWAY_PORT": str(free_port())}
    centre = EmbeddedEdgewright(tmp_path_factory.mktemp("centre") / "home", variables)
    centre.up()
    yield centre
    centre.clear_up()


def test_a_line_of_another_cluster_takes_away_the_release_that_an_earlier_one_has_left(
    cluster: Cluster,
    helm: Helm,
    published: Callable[[SealedSecretsChart], Path],
    archive: Path,
    tmp_path: Path,
    centre: EmbeddedEdgewright,
) -> None:
    def commissioned(name: str) -> tuple[BootstrapLine, Release]:
        uuid = centre.create(name)
        eventually(lambda: centre.is_ready(name))
        return BootstrapLine(centre, cluster, uuid, tmp_path), Release(helm, tmp_path, uuid=UUID(uuid))

    def ran(line: BootstrapLine, *options: str) -> str:
        done = line.run(*options)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    chart, before = published(SealedSecretsChart(archive.as_uri())), contents(cluster)
    line, older = commissioned("first-life")
    ran(line)
    older.installed(chart)
    ran(line, "--uninstall", "--keep-releases")
    uid = deployment(cluster)["metadata"]["uid"]
    assert centre.api("DELETE", f"/v1/cluster/{line.uuid}", params={"force": "true"}).status_code == 202
    eventually(lambda: centre.api("GET", f"/v1/cluster/{line.uuid}").status_code == 410)

    line, newer = commissioned("second-life")
    assert "sealed-secrets already" in newer.refused(chart)
    said = ran(line, "--dry-run")
    assert f"It would take away the Helm release {older.name}" in said
    assert deployment(cluster)["metadata"]["uid"] == uid
    said = ran(line)
    assert f"The Helm release {older.name} is gone" in said and deployment(cluster) is None
    newer.installed(chart)
    assert deployment(cluster)
    said = ran(line)
    assert "Helm release" not in said and deployment(cluster), "a cluster's own release is no leftover"
    assert f"The Helm release {newer.name} is gone" in ran(line, "--uninstall")
    taken_away(cluster, tmp_path, "--purge")
    assert contents(cluster).keys() <= before.keys()
