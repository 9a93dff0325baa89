"""What is taken for a release of Flux, and what edges get of it."""

import pytest
import yaml
from flux_file import CONTROLLERS, NAMESPACE, VERSION, flux_file, sha256_of
from pod_environment import PROXY_KEYS

from edgewright.domain.container_images import is_mirror, is_pinned, mirrored, repository_of
from edgewright.domain.flux_bundle import MAX_BUNDLE_BYTES, read_flux_bundle
from edgewright.domain.imported_flux import checked_import
from edgewright.errors import EdgewrightError, Invalid, TooLarge

FILE = flux_file()
SECRET = b"\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: flux-system}\n"
ELSEWHERE = b"\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: x, namespace: kube-system}\n"
FOREIGN_KIND = (
    b"\n---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a.evil.example}\n"
)
RIGHTS_FOR_ALL = (
    b"\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: x}\n"
    b"subjects: [{kind: Group, name: 'system:authenticated'}]\n"
)


def test_a_release_is_taken_with_its_version_and_images() -> None:
    bundle = read_flux_bundle(FILE)
    assert (bundle.namespace, bundle.version) == (NAMESPACE, VERSION)
    assert bundle.images == tuple(sorted(f"ghcr.io/fluxcd/{name}:v1.7.0" for name in CONTROLLERS))


def test_what_is_served_is_what_was_imported() -> None:
    given = [one for one in yaml.safe_load_all(FILE) if one["kind"] not in {"Deployment", "Namespace"}]
    served = list(yaml.safe_load_all(read_flux_bundle(FILE).rendered()))
    assert [one for one in served if one["kind"] not in {"Deployment", "Namespace"}] == given
    without = list(yaml.safe_load_all(read_flux_bundle(FILE).rendered(namespace_too=False)))
    assert without == [one for one in served if one["kind"] != "Namespace"]


def test_flux_never_prunes_its_own_namespace() -> None:
    [namespace] = [one for one in yaml.safe_load_all(read_flux_bundle(FILE).rendered()) if one["kind"] == "Namespace"]
    assert namespace["metadata"]["name"] == NAMESPACE
    assert namespace["metadata"]["annotations"] == {"kustomize.toolkit.fluxcd.io/prune": "disabled"}


def test_controllers_come_from_the_mirror_and_know_of_a_proxy() -> None:
    served = yaml.safe_load_all(read_flux_bundle(FILE).rendered(mirror="registry.example.com:5000/edge"))
    containers = [one["spec"]["template"]["spec"]["containers"][0] for one in served if one["kind"] == "Deployment"]
    assert len(containers) == 3
    for container, name in zip(containers, CONTROLLERS, strict=True):
        assert container["image"] == f"registry.example.com:5000/edge/fluxcd/{name}:v1.7.0"
        assert "envFrom" not in container
        own = {"name": "RUNTIME_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}
        assert container["env"] == [own, *PROXY_KEYS]
        assert container["args"] == ["--watch-all-namespaces", "--log-level=info"]


def test_a_proxy_that_the_release_itself_names_stays() -> None:
    own = b"env: [{name: NO_PROXY, value: .example}, {name: RUNTIME_NAMESPACE,"
    served = yaml.safe_load_all(read_flux_bundle(FILE.replace(b"env: [{name: RUNTIME_NAMESPACE,", own)).rendered())
    for container in (
        one["spec"]["template"]["spec"]["containers"][0] for one in served if one["kind"] == "Deployment"
    ):
        assert [each["value"] for each in container["env"] if each["name"] == "NO_PROXY"] == [".example"]
        assert PROXY_KEYS[0] in container["env"]


def test_a_date_stays_the_text_that_it_is_in_json() -> None:
    dated = FILE.replace(b"--log-level=info", b"2026-03-01")
    served = yaml.load_all(read_flux_bundle(dated).rendered(), Loader=yaml.BaseLoader)
    assert any("2026-03-01" in str(one) for one in served)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "0 manifests"),
        (b"\xff", "not YAML"),
        (b"a: [", "not YAML"),
        (b"just a text", "manifest 1 is not one"),
        (FILE + SECRET, "Secret x is of a kind"),
        (FILE + ELSEWHERE, "not in the namespace flux-system"),
        (FILE + FOREIGN_KIND, "none of Flux's"),
        (FILE + RIGHTS_FOR_ALL, "rights to somebody else"),
        (FILE + b"\n---\n" + FILE, "twice"),
        (FILE + b"\n---\na: &x {}\nb: *x\n", "aliases"),
        (FILE.replace(b"name: flux-system\n", b"name: kube-system\n", 1), "one of its own"),
        (FILE.replace(b"source-controller:v1.7.0", b"source-controller:latest"), "needs a tag or a digest"),
        (FILE.replace(b"image: ghcr.io", b"picture: ghcr.io", 1), "needs a tag or a digest"),
        (FILE.replace(b"name: v2\n", b"name: v2beta1\n"), "helmreleases.helm.toolkit.fluxcd.io in version v2"),
        (FILE.replace(b"kind: Namespace", b"kind: ServiceAccount", 1), "0 namespaces"),
        (FILE.replace(b"name: helm-controller\n", b"name: other-controller\n"), "does not bring the helm-controller"),
        (b"\n---\n".join(f"apiVersion: v1\nkind: A\nmetadata: {{name: a{n}}}".encode() for n in range(201)), "201"),
    ],
)
def test_anything_else_is_refused_with_its_reason(content: bytes, reason: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_flux_bundle(content)
    assert refused.value.code == "flux_bundle_invalid"
    assert reason in refused.value.detail


def test_a_huge_file_is_not_read() -> None:
    with pytest.raises(TooLarge):
        read_flux_bundle(b" " * (MAX_BUNDLE_BYTES + 1))


def test_a_file_is_taken_only_with_the_checksum_that_is_known_of_it() -> None:
    assert checked_import(FILE, sha256_of(FILE).upper()).sha256 == sha256_of(FILE)
    with pytest.raises(EdgewrightError) as refused:
        checked_import(FILE + b"\n", sha256_of(FILE))
    assert refused.value.code == "checksum_differs"
    assert sha256_of(FILE + b"\n") in refused.value.detail


@pytest.mark.parametrize(
    ("image", "there"),
    [
        ("ghcr.io/fluxcd/source-controller:v1", "m.example/fluxcd/source-controller:v1"),
        ("localhost:5000/a@sha256:" + "0" * 64, "m.example/a@sha256:" + "0" * 64),
        ("fluxcd/source-controller:v1", "m.example/fluxcd/source-controller:v1"),
        ("busybox:1", "m.example/library/busybox:1"),
    ],
)
def test_a_mirror_stands_in_for_the_registry_alone(image: str, there: str) -> None:
    assert mirrored(image, "m.example") == there
    assert is_pinned(image) and is_pinned(there)


@pytest.mark.parametrize("image", ["", "a", "a:latest", "a:", "a b:1", "https://a/b:1", "a:1\n", "A/b:1:2", "-a:1"])
def test_an_image_without_tag_or_digest_is_not_one_image(image: str) -> None:
    assert not is_pinned(image)


@pytest.mark.parametrize("mirror", ["https://a", "a/", "/a", "a b", "", "a/B", "a:1:2", "a\n", "a?b"])
def test_a_mirror_is_a_host_and_a_folder(mirror: str) -> None:
    assert not is_mirror(mirror)
    assert is_mirror("registry.example.com:5000/edge/images")


@pytest.mark.parametrize(
    ("image", "repository"),
    [
        ("r.example:5000/edge/agent:0.4", "r.example:5000/edge/agent"),
        ("r.example:5000/edge/agent", "r.example:5000/edge/agent"),
        ("r.example/agent:0.4@sha256:" + "0" * 64, "r.example/agent"),
        ("r.example:5000/agent@sha256:" + "0" * 64, "r.example:5000/agent"),
        ("agent:0.4", "agent"),
    ],
)
def test_a_repository_is_an_image_without_tag_and_digest(image: str, repository: str) -> None:
    assert repository_of(image) == repository
