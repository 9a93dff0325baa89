"""A real API server takes every manifest that Edgewright renders, read as strictly as it can."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any
from uuid import UUID

import httpx
import pytest
import yaml
from components import component
from edge_cluster.cluster import Cluster, edge_cluster
from edge_cluster.helm import Helm
from edge_cluster.helm_release import checked_out_chart, packed_sealed_secrets
from edge_cluster.release import release
from embedded import EmbeddedEdgewright
from flux_file import sha256_of
from loopback import PLAIN
from module_files import flux_definitions, module_folder
from sealing_keys import NOW, sealing_certificate
from supervised import eventually

from edgewright.adapters.chart_publisher import charts_path, publish_charts
from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.sealed_secrets_chart import SealedSecretsChart
from edgewright.domain.kubernetes_names import SecretReference
from edgewright.sealing import Plaintext, Scope, SealedValue, put_values, seal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from subprocess import CompletedProcess

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

IMAGE = "registry.example.com/edgewright:test"
FLUX_KINDS = ("GitRepository", "Kustomization", "HelmRelease")
KINDS = {
    *("ClusterRole", "ClusterRoleBinding", "ConfigMap", "CustomResourceDefinition", "Deployment", "Namespace"),
    *("NetworkPolicy", "Role", "RoleBinding", "SealedSecret", "Service", "ServiceAccount"),
    *FLUX_KINDS,
}
"""All that is rendered. Secrets are made by the bootstrap script alone, which its own tests run."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A Kubernetes cluster that knows the kinds, and has the namespaces; nothing else is on it."""
    with edge_cluster() as cluster:
        cluster.kubectl.apply(*(file.read_text() for file in flux_definitions()))
        cluster.kubectl.apply_definitions(module_folder("sealed-secrets-crds"))
        for namespace in ("edgewright", "flux-system"):
            cluster.kubectl("create", "namespace", namespace)
        yield cluster


@pytest.fixture(scope="module")
def centre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedEdgewright]:
    """A centre that has Flux and an agent for edges."""
    variables = {"EDGEWRIGHT_DEMO": "0", "EDGEWRIGHT_AGENT_IMAGE": IMAGE}
    centre = EmbeddedEdgewright(tmp_path_factory.mktemp("centre") / "home", variables)
    centre.up()
    file = release()
    imported = centre.api("PUT", "/v1/flux", params={"sha256": sha256_of(file)}, content=file)
    assert imported.status_code == 200, imported.text
    yield centre
    centre.clear_up()


@pytest.fixture(scope="module")
def rendered(centre: EmbeddedEdgewright, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """Where it comes from -> manifests."""
    found = {"chart": chart(tmp_path_factory.mktemp("chart")), "sealed secret": sealed_secret()}
    for name, wish in (("press-shop", {}), ("bare-shop", {"bare": True})):
        found |= of_cluster(centre, name, wish)
    return found


def of_cluster(centre: EmbeddedEdgewright, name: str, wish: Mapping[str, Any]) -> dict[str, str]:
    """All that the centre gives an edge: its repository, and what its bootstrap applies."""
    uuid = UUID(centre.api("POST", "/v1/cluster", json={"name": name, **wish}).json()["uuid"])
    eventually(lambda: centre.is_ready(name))
    git = BareGitServer(centre.home / "repositories")
    head = git.head(uuid)
    assert head is not None
    files = [path for path in git.list(uuid, "", at=head) if path.endswith(".yaml")]
    found = {f"{name} {path}": (git.read(uuid, path, at=head) or b"").decode() for path in files}
    url = centre.api("POST", f"/v1/cluster/{uuid}/registration-token").json()["url"]
    token = str(url).partition("token=")[2]
    found[f"{name} manifests"] = fetched(f"{url}&format=manifests")
    for part in ("agent", "flux"):
        address = f"{centre.endpoints()['gateway']}/v1/cluster/{uuid}/install/{part}"
        found[f"{name} {part}"] = fetched(address, Authorization=f"Bearer {token}")
    return found


def fetched(url: str, **headers: str) -> str:
    answer = httpx.get(url, headers=headers, timeout=60, **PLAIN)
    assert answer.status_code == 200, answer.text
    return answer.text


def chart(folder: Path) -> str:
    """What the chart of clusters installs, sealed-secrets with it."""
    git = BareGitServer(folder / "repositories")
    helm = Helm(component("helm"), folder / "none", folder / "helm")
    publish_charts(git, charts_path(), SealedSecretsChart(packed_sealed_secrets(helm, folder).as_uri()))
    published = checked_out_chart(git, folder)
    values = folder / "values.yaml"
    cluster = {"name": "press-shop", "uuid": "f59cc279-9125-4d36-a37f-d9fcc13ba0c4", "organisation": "ACME"}
    values.write_text(yaml.safe_dump({"cluster": cluster, "sealed-secrets": {"enabled": True}}))
    options = ("--namespace", "edgewright", "--kube-version", "1.33", "--values", values)
    return helm("template", "edge-cluster", published, *options)


def sealed_secret() -> str:
    certificate = sealing_certificate()
    ciphertext = seal(Plaintext(b"s3cr3t"), certificate, scope=Scope.STRICT, secret=SecretReference("default", "db"))
    return put_values(
        None, SecretReference("default", "db"), {"password": SealedValue(ciphertext, certificate.fingerprint, NOW)}
    ).decode()


def asked(cluster: Cluster, manifests: str) -> CompletedProcess[str]:
    """What the API server would say to them; nothing is stored."""
    options = ("--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict")
    return cluster.kubectl.try_("apply", *options, "--filename", "-", given=manifests)


def every_manifest(rendered: Mapping[str, str]) -> list[dict[str, Any]]:
    return [each for text in rendered.values() for each in yaml.safe_load_all(text) if each]


def test_every_manifest_is_taken(cluster: Cluster, rendered: Mapping[str, str]) -> None:
    for where, manifests in rendered.items():
        done = asked(cluster, manifests)
        assert done.returncode == 0, f"{where}: {done.stderr}"
    assert {each["kind"] for each in every_manifest(rendered)} == KINDS


def test_a_broken_manifest_of_each_kind_is_found(cluster: Cluster, rendered: Mapping[str, str]) -> None:
    examples = {each["kind"]: each for each in every_manifest(rendered)}
    broken = {kind: {**example, "noSuchField": 1} for kind, example in examples.items()}
    for kind in FLUX_KINDS:
        broken[f"{kind} within"] = copy.deepcopy(examples[kind])
        broken[f"{kind} within"]["spec"]["noSuchField"] = 1
        broken[f"{kind} of another type"] = copy.deepcopy(examples[kind])
        broken[f"{kind} of another type"]["spec"]["interval"] = ["10m"]
    pod = broken["Deployment within"] = copy.deepcopy(examples["Deployment"])
    pod["spec"]["template"]["spec"]["containers"][0]["imagePullPolice"] = "Always"
    taken = [name for name, manifest in broken.items() if asked(cluster, yaml.safe_dump(manifest)).returncode == 0]
    assert taken == []
