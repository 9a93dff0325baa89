"""The Flux bundle: the release file ``install.yaml`` of Flux, as an operator imported it.

It is applied with an administrator's rights on every edge without Flux, so it may only contain what Flux's own
releases contain: their kinds, in one separate namespace, with exactly named images.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import yaml

from edgewright.domain.container_images import is_pinned, mirrored
from edgewright.domain.json import Json, JsonObject
from edgewright.domain.own_objects import UNPRUNED
from edgewright.domain.rendering.manifests import (
    ManifestKey,
    annotated,
    checked_manifest,
    labelled,
    manifest_key,
    manifests_yaml,
)
from edgewright.domain.templates import TemplateError
from edgewright.errors import Invalid, TooLarge

MAX_BUNDLE_BYTES = 4 * 1024 * 1024
"""Flux's own file has less than one; etcd refuses single objects of more than 1.5."""
MAX_MANIFESTS = 200
"""Flux's own file has about fifty."""
FLUX_NAMESPACE = "flux-system"
"""The namespace in Flux's releases; a bundle may name another one."""
PROXY_SECRET = "edgewright-proxy"  # noqa: S105 - the name of an object
"""Secret that the bootstrap script creates if a proxy leads to the centre."""
PROXY_VARIABLES = ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
"""Its keys, which are all that a container gets from it: other variables could redirect a program."""

USED_KINDS: Mapping[str, str] = {
    "gitrepositories.source.toolkit.fluxcd.io": "v1",
    "kustomizations.kustomize.toolkit.fluxcd.io": "v1",
    "helmreleases.helm.toolkit.fluxcd.io": "v2",
}
"""CustomResourceDefinition → the version of it that driving repositories use."""
CONTROLLERS = ("source-controller", "kustomize-controller", "helm-controller")

_WHERE = "bundle"
_NAMESPACED = frozenset(
    {
        ("", "ResourceQuota"),
        ("", "Service"),
        ("", "ServiceAccount"),
        ("apps", "Deployment"),
        ("networking.k8s.io", "NetworkPolicy"),
        ("rbac.authorization.k8s.io", "Role"),
        ("rbac.authorization.k8s.io", "RoleBinding"),
    }
)
_DEFINITION = ("apiextensions.k8s.io", "CustomResourceDefinition")
_NAMESPACE = ("", "Namespace")
_CLUSTER_WIDE = frozenset(
    {
        _NAMESPACE,
        _DEFINITION,
        ("rbac.authorization.k8s.io", "ClusterRole"),
        ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    }
)
_FLUX_DEFINITION = re.compile(r"[a-z]+\.[a-z]+\.toolkit\.fluxcd\.io")
_KUBERNETES_OWN = re.compile(r"default|kube-.*")
_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_VERSION = re.compile(r"v[0-9A-Za-z.+-]{1,63}")


@dataclass(frozen=True, slots=True)
class FluxBundle:
    """A valid bundle.

    Args:
        namespace: namespace of its controllers.
        version: version of Flux, such as ``v2.7.0``, from the labels of its objects; empty if there are none.
        images: images of its controllers, sorted.
        manifests: in the order of the file.
    """

    namespace: str
    version: str
    images: tuple[str, ...]
    manifests: tuple[JsonObject, ...]

    def rendered(
        self, *, mirror: str | None = None, namespace_too: bool = True, labels: Mapping[str, str] | None = None
    ) -> bytes:
        """Returns the manifests for an edge: with images from the mirror, proxy settings, and a namespace that Flux
        does not prune.

        Args:
            mirror: ``host[:port][/folder]`` with the images; None: they stay as they are.
            namespace_too: False: without the Namespace, for callers that create it first.
            labels: additional labels for each object.
        """
        kept = [one for one in self.manifests if namespace_too or _kind(one) != _NAMESPACE]
        return manifests_yaml([labelled(_for_an_edge(one, mirror), labels or {}) for one in kept])


def read_flux_bundle(content: bytes) -> FluxBundle:
    """Reads the bundle in a file.

    Raises:
        TooLarge: more than ``MAX_BUNDLE_BYTES``.
        Invalid: code ``flux_bundle_invalid``: it is not like a release of Flux; the sentence says why.
    """
    if len(content) > MAX_BUNDLE_BYTES:
        raise TooLarge(f"The bundle has more than {MAX_BUNDLE_BYTES} bytes.", code="too_large")
    manifests = _manifests(content)
    namespace = _the_namespace(manifests)
    for manifest in manifests:
        _check(manifest, namespace)
    _check_complete(manifests)
    versions = {_label(one, "app.kubernetes.io/version") for one in manifests} - {""}
    version = versions.pop() if len(versions) == 1 else ""
    return FluxBundle(
        namespace=namespace,
        version=version if _VERSION.fullmatch(version) else "",
        images=tuple(sorted({image for one in manifests for image in _images(one)})),
        manifests=tuple(manifests),
    )


class _BundleLoader(yaml.CSafeLoader):
    """PyYAML's safe loader, except that dates stay strings, as in JSON."""


_BundleLoader.yaml_implicit_resolvers = {
    first: [resolver for resolver in resolvers if resolver[0] != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


def _manifests(content: bytes) -> Sequence[JsonObject]:
    try:
        text = content.decode()
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=_BundleLoader)):
            raise _invalid("It has YAML aliases, with which a small file can become a huge one.")
        documents = [document for document in yaml.load_all(text, Loader=_BundleLoader) if document is not None]
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError, ValueError) as error:
        raise _invalid("It is not YAML.") from error
    if not 0 < len(documents) <= MAX_MANIFESTS:
        raise _invalid(f"It has {len(documents)} manifests; 1 to {MAX_MANIFESTS} can be.")
    seen: set[ManifestKey] = set()
    for number, document in enumerate(documents, start=1):
        try:
            key = manifest_key(checked_manifest(document, where=_WHERE, pointer=f"/{number}"))
        except TemplateError as error:
            raise _invalid(f"Its manifest {number} is not one: {error.reason}.") from error
        if key in seen:
            raise _invalid(f"It has {key[1]} {key[3]} twice.")
        seen.add(key)
    return documents


def _the_namespace(manifests: Sequence[JsonObject]) -> str:
    names = [_name(one) for one in manifests if _kind(one) == _NAMESPACE]
    if len(names) != 1:
        raise _invalid(f"It has {len(names)} namespaces; Flux has one.")
    if _DNS_LABEL.fullmatch(names[0]) is None or _KUBERNETES_OWN.fullmatch(names[0]):
        raise _invalid(f"Its namespace is '{names[0]}'; Flux has one of its own.")
    return names[0]


def _check(manifest: JsonObject, namespace: str) -> None:
    kind, name = _kind(manifest), _name(manifest)
    if kind in _NAMESPACED:
        if manifest_key(manifest)[2] != namespace:
            raise _invalid(f"{kind[1]} {name} is not in the namespace {namespace}.")
    elif kind not in _CLUSTER_WIDE:
        raise _invalid(f"{kind[1]} {name} is of a kind that Flux's releases do not have.")
    if kind == _DEFINITION and _FLUX_DEFINITION.fullmatch(name) is None:
        raise _invalid(f"{kind[1]} {name} is none of Flux's.")
    if kind[1].endswith("Binding"):
        _check_subjects(manifest, namespace)
    if kind == ("apps", "Deployment"):
        images = list(_images(manifest))
        unnamed = [image for image in images if not is_pinned(image)]
        if not images or unnamed:
            raise _invalid(f"Deployment {name} has the image '{(unnamed or [''])[0]}'; it needs a tag or a digest.")


def _check_subjects(manifest: JsonObject, namespace: str) -> None:
    subjects = manifest.get("subjects")
    for subject in subjects if isinstance(subjects, Sequence) else ():
        if not isinstance(subject, Mapping) or (subject.get("kind"), subject.get("namespace")) != (
            "ServiceAccount",
            namespace,
        ):
            raise _invalid(f"{_kind(manifest)[1]} {_name(manifest)} gives rights to somebody else than Flux.")


def _check_complete(manifests: Sequence[JsonObject]) -> None:
    served = {_name(one): _served(one) for one in manifests if _kind(one) == _DEFINITION}
    for definition, version in USED_KINDS.items():
        if version not in served.get(definition, ()):
            raise _invalid(f"It does not bring {definition} in version {version}, which driving repositories use.")
    running = {_name(one) for one in manifests if _kind(one) == ("apps", "Deployment")}
    missing = [controller for controller in CONTROLLERS if controller not in running]
    if missing:
        raise _invalid(f"It does not bring the {missing[0]}.")


def _for_an_edge(manifest: JsonObject, mirror: str | None) -> JsonObject:
    if _kind(manifest) == _NAMESPACE:
        return annotated(manifest, UNPRUNED)
    if _kind(manifest) != ("apps", "Deployment"):
        return manifest
    return _with_containers(manifest, mirror)


def _with_containers(value: JsonObject, mirror: str | None) -> JsonObject:
    """Returns the Deployment with images from the mirror, and with the proxy settings from Edgewright's Secret."""
    changed = dict(value)
    for key in ("spec", "template"):
        inner = value.get(key)
        if isinstance(inner, Mapping):
            changed[key] = _with_containers(inner, mirror)
    for key in ("containers", "initContainers"):
        containers = value.get(key)
        if isinstance(containers, Sequence):
            changed[key] = [_container(one, mirror) if isinstance(one, Mapping) else one for one in containers]
    return changed


def _container(container: JsonObject, mirror: str | None) -> JsonObject:
    image, own = container.get("image"), container.get("env")
    variables: list[Json] = list(own) if isinstance(own, Sequence) else []
    named = {one.get("name") for one in variables if isinstance(one, Mapping)}
    return {
        **container,
        "image": mirrored(str(image), mirror) if mirror else image,
        "env": [*variables, *(_from_proxy_secret(name) for name in PROXY_VARIABLES if name not in named)],
    }


def _from_proxy_secret(name: str) -> Json:
    key: Json = {"name": PROXY_SECRET, "key": name, "optional": True}
    return {"name": name, "valueFrom": {"secretKeyRef": key}}


def _images(manifest: JsonObject) -> Iterator[str]:
    """Yields the images of a Deployment; an empty string for a container without one."""
    if _kind(manifest) != ("apps", "Deployment"):
        return
    pod = _inside(manifest, "spec", "template", "spec")
    for key in ("containers", "initContainers"):
        containers = pod.get(key)
        for container in containers if isinstance(containers, Sequence) else ():
            image = container.get("image") if isinstance(container, Mapping) else None
            yield image if isinstance(image, str) else ""


def _served(definition: JsonObject) -> set[str]:
    versions = _inside(definition, "spec").get("versions")
    return {
        str(version.get("name"))
        for version in (versions if isinstance(versions, Sequence) else ())
        if isinstance(version, Mapping) and version.get("served") is True
    }


def _inside(value: JsonObject, *keys: str) -> JsonObject:
    for key in keys:
        inner = value.get(key)
        value = inner if isinstance(inner, Mapping) else {}
    return value


def _kind(manifest: JsonObject) -> tuple[str, str]:
    return manifest_key(manifest)[:2]


def _name(manifest: JsonObject) -> str:
    return manifest_key(manifest)[3]


def _label(manifest: JsonObject, label: str) -> str:
    return str(_inside(manifest, "metadata", "labels").get(label, ""))


def _invalid(reason: str) -> Invalid:
    return Invalid(
        f"This is not Flux's install.yaml. {reason}",
        code="flux_bundle_invalid",
        hint="Take the file install.yaml of a release of Flux as it is.",
    )
