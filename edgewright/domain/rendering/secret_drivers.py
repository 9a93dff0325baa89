"""What drives secrets on an edge: one Flux Kustomization, a *driver*, for each namespace that has any.

Flux applies a Kustomization as a whole, so a namespace that the edge does not have would hold up the secrets of all
others. The Flux template has one Kustomization for ``edo/secrets``; the renderer takes it as the pattern and stores
it beside the drivers, so that whoever commits the first secret of a namespace makes its driver from what the
repository was rendered with.

A namespace has a driver while its folder holds a note. Driver and note outlive the last secret, until the next
rendering: Flux would remove a secret that is set again at once together with the driver that goes.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from hashlib import sha256

import yaml

from edgewright.domain.json import JsonObject
from edgewright.domain.kubernetes_names import SecretReference
from edgewright.domain.own_objects import PRUNE_ANNOTATION, UNPRUNED
from edgewright.domain.rendering.layout import (
    DRIVER_PATTERN_PATH,
    DRIVERS_PATH,
    NAMESPACE_NOTE,
    RETIRED_DRIVER_PATH,
    RETIRED_NOTE,
    RETIRED_NOTE_PATH,
    SECRETS_FOLDER,
)
from edgewright.domain.rendering.manifests import manifest_key, manifests_yaml
from edgewright.errors import Invalid

MOST_NAMESPACES = 250
"""With secrets, of one cluster: Flux looks at each driver by itself, and the agent reports each."""

Changes = dict[str, bytes | None]
Pattern = Sequence[JsonObject]

_GROUP, _KIND = "kustomize.toolkit.fluxcd.io", "Kustomization"
_SOURCE = "self-link"
_NOTE, _NAMESPACE = "README.md", "namespace.yml"
_SEALED = ".yaml"
_LONGEST_NAME = 63
"""Flux puts the name of a Kustomization into a label."""
_HASH = 20
_IF_NOT_PRESENT = {"kustomize.toolkit.fluxcd.io/ssa": "IfNotPresent"}
_OF_RETIRED = frozenset({"interval", "retryInterval", "sourceRef", "timeout"})


def drives_secrets(manifest: JsonObject) -> bool:
    """Whether a checked manifest is the Kustomization of the folder with all secrets."""
    group, kind, _, _ = manifest_key(manifest)
    spec = manifest.get("spec")
    if (group, kind) != (_GROUP, _KIND) or not isinstance(spec, Mapping):
        return False
    path, source = spec.get("path"), spec.get("sourceRef")
    folder = path.removeprefix("./").rstrip("/") if isinstance(path, str) else ""
    return folder == SECRETS_FOLDER.rstrip("/") and isinstance(source, Mapping) and source.get("name") == _SOURCE


def sealed_place(path: str) -> SecretReference | None:
    """The Secret whose file this is; None: it is no such file."""
    namespace, slash, file = path.removeprefix(SECRETS_FOLDER).partition("/")
    is_sealed = path.startswith(SECRETS_FOLDER) and slash and "/" not in file and file.endswith(_SEALED)
    return SecretReference(namespace, file.removesuffix(_SEALED)) if is_sealed else None


def sealed_files(paths: Iterable[str]) -> Iterator[tuple[str, SecretReference]]:
    """Those of the paths that are files of Secrets, and the Secret of each."""
    for path in paths:
        if (secret := sealed_place(path)) is not None:
            yield path, secret


def is_namespace_note(path: str) -> bool:
    """Whether this is the note in the folder of one namespace."""
    return _noted(path) is not None


def namespace_note_path(namespace: str) -> str:
    """The note in the folder of a namespace; there is a driver as long as there is this."""
    return f"{SECRETS_FOLDER}{namespace}/{_NOTE}"


def namespace_manifest_path(namespace: str) -> str:
    """The manifest of a namespace that the edge is to get. Not ``.yaml``: a Secret may be called ``namespace``."""
    return f"{SECRETS_FOLDER}{namespace}/{_NAMESPACE}"


def sealed_namespaces(paths: Iterable[str]) -> set[str]:
    """The namespaces with secrets."""
    return {secret.namespace for _, secret in sealed_files(paths)}


def used_namespaces(paths: Iterable[str]) -> set[str]:
    """The namespaces with secrets, or with a driver that outlives them."""
    found = list(paths)
    return sealed_namespaces(found) | {name for name in map(_noted, found) if name}


def check_room(used: AbstractSet[str], wanted: AbstractSet[str]) -> None:
    """Refuses the first secret of one namespace too many; where there are too many already, others go on.

    Raises:
        Invalid: code ``too_many_namespaces``.
    """
    if len(wanted) > MOST_NAMESPACES and not wanted <= used:
        raise Invalid(
            f"Secrets of one cluster can be in {MOST_NAMESPACES} namespaces; it has secrets in {len(used)} already.",
            code="too_many_namespaces",
            hint="Use one of those, or delete all secrets of another: it counts until the next rendering, "
            "which every change of the configuration brings.",
            where="namespace",
        )


def driver_name(base: str, namespace: str) -> str:
    """The name of the driver of a namespace: ``BASE-NAMESPACE``, or as much of it as fits, and a hash.

    One that was shortened has exactly the longest length, and no other has: so no two namespaces share a driver.
    """
    name = f"{base}-{namespace}"
    if len(name) < _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME - _HASH - 1]}-{sha256(name.encode()).hexdigest()[:_HASH]}"


def pattern_file(pattern: Pattern) -> Mapping[str, bytes]:
    """The file that keeps the pattern; none if the template drives no secrets."""
    return {DRIVER_PATTERN_PATH: manifests_yaml(pattern)} if pattern else {}


def read_pattern(content: bytes | None) -> Pattern:
    """What ``pattern_file`` has written; empty where there is none."""
    if content is None:
        return []
    return [one for one in yaml.load_all(content, Loader=yaml.CSafeLoader) if isinstance(one, Mapping)]


def drivers_file(pattern: Pattern, namespaces: AbstractSet[str]) -> bytes | None:
    """The drivers of these namespaces; None if there is none."""
    drivers = [_driver(one, namespace) for namespace in sorted(namespaces) for one in pattern]
    return manifests_yaml(drivers) if drivers else None


def open_namespaces(
    pattern: Pattern, paths: Iterable[str], opened: AbstractSet[str], created: AbstractSet[str]
) -> Changes:
    """What a commit of secrets brings along.

    Args:
        pattern: empty in a repository that has been rendered by an earlier version: there, one driver has them all.
        paths: every path below ``edo/secrets`` at the head.
        opened: namespaces that get their first secret.
        created: namespaces that the edge is to get, too.
    """
    changes: Changes = {namespace_manifest_path(name): _namespace_manifest(name) for name in created}
    if pattern and opened:
        driven = {name for name in map(_noted, paths) if name}
        changes |= {namespace_note_path(name): NAMESPACE_NOTE for name in opened}
        changes[DRIVERS_PATH] = drivers_file(pattern, driven | opened)
    return changes


def rendered_drivers(pattern: Pattern, paths: Sequence[str]) -> Changes:
    """What a rendering has to change: a driver and a note for each namespace with secrets, and for no other.

    The one driver that repositories of earlier versions have had is retired: it stays, reads an empty folder and
    prunes nothing. Were it to go, or to prune, Flux would delete each Secret before its new driver has taken it over.

    Args:
        pattern: empty if the template drives no secrets: what there is stays as it is.
        paths: every path at the head of the repository; empty before the first commit.
    """
    if not pattern:
        return {}
    there, sealed = set(paths), sealed_namespaces(paths)
    changes: Changes = {namespace_note_path(name): NAMESPACE_NOTE for name in sealed}
    for name in used_namespaces(paths) - sealed:
        changes |= {
            path: None for path in (namespace_note_path(name), namespace_manifest_path(name)) if path in there
        }
    drivers = drivers_file(pattern, sealed)
    if drivers is not None or DRIVERS_PATH in there:
        changes[DRIVERS_PATH] = drivers
    if there and DRIVER_PATTERN_PATH not in there:
        changes |= {
            RETIRED_DRIVER_PATH: manifests_yaml([_retired(one) for one in pattern]),
            RETIRED_NOTE_PATH: RETIRED_NOTE,
        }
    return changes


def _driver(one: JsonObject, namespace: str) -> JsonObject:
    driver, base = _prunable(one), manifest_key(one)[3]
    metadata = driver["metadata"]
    assert isinstance(metadata, Mapping)  # noqa: S101 - checked_manifest said so; narrows the type
    return {
        **driver,
        "metadata": {**metadata, "name": driver_name(base, namespace)},
        "spec": {**_spec(one), "path": f"./{SECRETS_FOLDER}{namespace}"},
    }


def _retired(one: JsonObject) -> JsonObject:
    """With nothing that its old folder was for, such as health checks."""
    kept = {key: value for key, value in _spec(one).items() if key in _OF_RETIRED}
    folder = RETIRED_NOTE_PATH.rpartition("/")[0]
    return _prunable({**one, "spec": {**kept, "path": f"./{folder}", "prune": False}})


def _spec(one: JsonObject) -> JsonObject:
    spec = one["spec"]
    assert isinstance(spec, Mapping)  # noqa: S101 - drives_secrets said so; narrows the type
    return spec


def _prunable(one: JsonObject) -> JsonObject:
    """Without what would keep it on the edge when it leaves its file."""
    present = one["metadata"]
    assert isinstance(present, Mapping)  # noqa: S101 - checked_manifest said so; narrows the type
    annotations = present.get("annotations")
    if isinstance(annotations, Mapping):
        left = {key: value for key, value in annotations.items() if key != PRUNE_ANNOTATION}
        present = {key: value for key, value in present.items() if key != "annotations"}
        present = {**present, "annotations": left} if left else present
    return {**one, "metadata": present}


def _namespace_manifest(namespace: str) -> bytes:
    """It outlives its file, for whatever else is in the namespace is not ours to delete. One that is there already
    stays as it is, with the labels that somebody else gives it."""
    metadata: JsonObject = {"name": namespace, "annotations": {**UNPRUNED, **_IF_NOT_PRESENT}}
    return manifests_yaml([{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}])


def _noted(path: str) -> str | None:
    namespace, slash, file = path.removeprefix(SECRETS_FOLDER).partition("/")
    return namespace if path.startswith(SECRETS_FOLDER) and slash and file == _NOTE else None
