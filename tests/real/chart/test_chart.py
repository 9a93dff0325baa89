"""The chart that edges get brings sealed-secrets, keeps its keys whatever helm does, and leaves another one alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml
from edge_cluster.chart_release import HOME, Release, deployment, opened, options, sealed
from edge_cluster.contents import contents
from edge_cluster.controllers import SEALED_SECRETS_NAMESPACE, SEALED_SECRETS_RIGHTS, SealedSecrets
from module_files import module_folder
from sealing_workloads import CONTROLLERS, NO_CONTROLLERS
from supervised import eventually

from edgewright.adapters.sealed_secrets_chart import SealedSecretsChart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from edge_cluster.cluster import Cluster
    from edge_cluster.helm import Helm

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

MIRROR = "registry.example.com/edge"
ANOTHER = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: sealed-secrets-controller, namespace: kube-system, labels: {name: sealed-secrets-controller}}
spec:
  selector: {matchLabels: {name: sealed-secrets-controller}}
  template:
    metadata: {labels: {name: sealed-secrets-controller}}
    spec:
      serviceAccountName: sealed-secrets-controller
      containers: [{name: sealed-secrets-controller, image: "docker.io/bitnami/sealed-secrets-controller:0.36.1"}]
"""
"""As somebody installs it with upstream's plain manifests."""


def test_it_lints_as_published(
    helm: Helm, published: Callable[[SealedSecretsChart], Path], archive: Path, tmp_path: Path
) -> None:
    chart = published(SealedSecretsChart(archive.as_uri(), MIRROR))
    release = Release(helm, tmp_path)
    helm("lint", "--strict", chart, "--values", release.values)
    broken = tmp_path / "broken.yaml"
    broken.write_text(yaml.safe_dump({"cluster": {"name": "x", "uuid": "no-uuid", "organisation": "ACME"}}))
    assert helm.try_("lint", "--strict", chart, "--values", broken).returncode != 0
    images = helm("template", release.name, chart, "--values", release.values, "--kube-version", "1.33")
    assert f"image: {MIRROR}/bitnami/sealed-secrets-controller:" in images


def test_keys_outlive_upgrades_and_the_release_itself(
    cluster: Cluster, helm: Helm, published: Callable[[SealedSecretsChart], Path], archive: Path, tmp_path: Path
) -> None:
    chart = published(SealedSecretsChart(archive.as_uri()))
    without = Release(helm, tmp_path, {"sealed-secrets": {"enabled": False}})
    without.installed(chart)
    assert cluster.find("configmap", "edgewright-cluster", namespace=HOME)
    assert deployment(cluster) is None

    release = Release(helm, tmp_path)
    # Kinds come with an installation; with an upgrade helm-controller applies them, and helm does not.
    cluster.kubectl.apply(helm("show", "crds", chart))
    release.installed(chart)
    assert cluster.find("service", "sealed-secrets-controller", namespace=SEALED_SECRETS_NAMESPACE)
    controller = SealedSecrets(cluster, options=options(cluster), installed=True)
    controller.start()
    [key] = controller.keys()
    cluster.kubectl.apply(sealed(controller, "before", "made before the upgrade"))
    eventually(lambda: opened(cluster, "before") == "made before the upgrade")

    release.installed(published(SealedSecretsChart(archive.as_uri(), MIRROR)))
    assert MIRROR in deployment(cluster)["spec"]["template"]["spec"]["containers"][0]["image"]
    controller.restart()
    assert controller.keys() == [key]
    cluster.kubectl("delete", "secret", "before")
    eventually(lambda: opened(cluster, "before") == "made before the upgrade")

    release.uninstalled()
    assert deployment(cluster) is None
    assert controller.keys() == [key]
    assert cluster.find("sealedsecret", "before")
    assert opened(cluster, "before") == "made before the upgrade"

    release.installed(chart)
    controller.restart()
    assert controller.keys() == [key]
    cluster.kubectl("delete", "secret", "before")
    eventually(lambda: opened(cluster, "before") == "made before the upgrade")
    release.uninstalled()


@pytest.fixture
def another(cluster: Cluster) -> Iterator[None]:
    """Somebody else's sealed-secrets."""
    cluster.kubectl.apply_definitions(module_folder("sealed-secrets-crds"))
    installed = SEALED_SECRETS_RIGHTS.read_text() + "\n---\n" + ANOTHER
    cluster.kubectl.apply(installed)
    yield
    cluster.kubectl("delete", "--filename", "-", given=installed)


@pytest.mark.usefixtures("another")
def test_another_sealed_secrets_is_left_alone(
    cluster: Cluster, helm: Helm, published: Callable[[SealedSecretsChart], Path], archive: Path, tmp_path: Path
) -> None:
    def found() -> dict[str, Any]:
        return {key: one for key, one in contents(cluster).items() if "/edgewright/" not in key}

    chart = published(SealedSecretsChart(archive.as_uri()))
    before = found()
    said = Release(helm, tmp_path).refused(chart)
    assert "sealed-secrets already" in said and "sealed-secrets.enabled to false" in said
    assert "kube-system/sealed-secrets-controller" in said
    assert found() == before
    without = Release(helm, tmp_path, {"sealed-secrets": {"enabled": False}})
    without.installed(chart)
    assert found() == before
    said = Release(helm, tmp_path).refused(chart)
    assert "sealed-secrets already" in said
    assert found() == before
    without.uninstalled()
    assert found() == before


@pytest.fixture
def tools(cluster: Cluster) -> Iterator[Callable[[str], None]]:
    """Puts Deployments into the namespace `tools`; they go at the end."""
    if cluster.find("namespace", "tools") is None:
        cluster.kubectl("create", "namespace", "tools")
    yield cluster.kubectl.apply
    cluster.kubectl("delete", "deployments", "--all", "--namespace", "tools")


@pytest.mark.parametrize("what", CONTROLLERS)
def test_a_controller_is_known_by_what_makes_it_one(
    helm: Helm,
    published: Callable[[SealedSecretsChart], Path],
    archive: Path,
    tmp_path: Path,
    tools: Callable[[str], None],
    what: str,
) -> None:
    tools(CONTROLLERS[what])
    said = Release(helm, tmp_path).stopped_by(published(SealedSecretsChart(archive.as_uri())))
    assert "sealed-secrets already, as the Deployment tools/theirs" in said


@pytest.mark.parametrize("changed", ["nameOverride=x", "image.repository=x/y", "command={/ko-app/controller}"])
def test_upstreams_chart_is_known_whatever_is_renamed_in_it(
    helm: Helm,
    published: Callable[[SealedSecretsChart], Path],
    archive: Path,
    tmp_path: Path,
    tools: Callable[[str], None],
    changed: str,
) -> None:
    rendered = yaml.safe_load_all(helm("template", "theirs", archive, "--namespace", "tools", "--set", changed))
    [found] = [one for one in rendered if one and one["kind"] == "Deployment"]
    tools(yaml.safe_dump(found))
    said = Release(helm, tmp_path).stopped_by(published(SealedSecretsChart(archive.as_uri())))
    assert "sealed-secrets already, as the Deployment tools/" in said


@pytest.mark.parametrize("what", NO_CONTROLLERS)
def test_what_only_has_its_name_stops_nothing(
    helm: Helm,
    published: Callable[[SealedSecretsChart], Path],
    archive: Path,
    tmp_path: Path,
    tools: Callable[[str], None],
    what: str,
) -> None:
    tools(NO_CONTROLLERS[what])
    assert Release(helm, tmp_path).stopped_by(published(SealedSecretsChart(archive.as_uri()))) == ""


def test_one_that_comes_later_stops_no_upgrade_and_never_costs_the_cluster_its_own(
    cluster: Cluster,
    helm: Helm,
    published: Callable[[SealedSecretsChart], Path],
    archive: Path,
    tmp_path: Path,
    tools: Callable[[str], None],
) -> None:
    chart, release = published(SealedSecretsChart(archive.as_uri())), Release(helm, tmp_path)
    release.installed(chart)
    uid = deployment(cluster)["metadata"]["uid"]
    tools(CONTROLLERS["upstream's plain manifest"])
    release.installed(published(SealedSecretsChart(archive.as_uri(), MIRROR)))
    assert MIRROR in deployment(cluster)["spec"]["template"]["spec"]["containers"][0]["image"]
    assert deployment(cluster)["metadata"]["uid"] == uid
    release.uninstalled()
