"""What the removal commit of a deletion takes away, and what it adds so that the edge can give up its sealing keys.

Deleting the kind SealedSecret and the sealing keys takes rights that no account of Edgewright's has on an edge. They
come with the commit that empties it, as a Kustomization of their own: where Flux may not grant them, nothing else is
held up. It has a source of its own as well, because what comes from the usual one counts as a workload. The detacher
uses the rights and has Flux take them away again.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

import yaml

from edgewright.domain.json import Json, JsonObject
from edgewright.domain.rendering.components import COMPONENT_FOLDERS
from edgewright.domain.rendering.layout import (
    BY_HAND_FOLDER,
    BY_HAND_NOTE,
    BY_HAND_NOTE_PATH,
    CLUSTER_FOLDER,
    DRIVER_FILES,
    DRIVERS_FOLDER,
    SECRETS_FOLDER,
    SECRETS_NOTE,
    SECRETS_NOTE_PATH,
    SELF_LINK_PATH,
)
from edgewright.domain.rendering.manifests import manifest_key, manifests_yaml
from edgewright.domain.rendering.secret_drivers import is_namespace_note

PART_PATH = f"{CLUSTER_FOLDER}purge.yaml"
RIGHTS_PATH = "edo/purge/rights.yaml"
RELEASE_PATH = f"{CLUSTER_FOLDER}edge-cluster.yaml"
READ_BY_PURGE = (SELF_LINK_PATH, RELEASE_PATH)
"""Files that the rights follow from."""

PART = "edge-purge"
"""Kustomization and source; ``agent/purging.py`` has the same."""
RIGHTS = "edgewright-purge"
"""Roles and bindings; ``agent/purging.py`` and ``agent/detach.yaml`` have the same."""
USUAL_NAMESPACE = "kube-system"
"""Where sealed-secrets is if the cluster's values name none; ``charts/edge-cluster/values.yaml`` has the same."""

_DETACHER = "edgewright-detach"
_SELF_LINK = "self-link"
_CHART = "sealed-secrets"
_RBAC = "rbac.authorization.k8s.io"
_KEPT = frozenset({"interval", "retryInterval", "timeout"})
"""What the source's Kustomization says that its twin repeats."""


def workload_removal(paths: Sequence[str]) -> Mapping[str, bytes | None]:
    """The changes that take every workload off a cluster and leave what drives it.

    Everything in ``by-hand`` and every sealed secret goes, the files in ``edo/cluster`` that a changed Flux
    template added, and what brings components: those stay on the edge, which goes on by them until it detaches. The
    notes of the emptied folders stay, and those of the two above come back: Flux prunes what a folder used to hold
    only while the folder exists.

    The files of the default Flux template stay, ``edge-cluster.yaml`` among them: its release brings sealed-secrets,
    which leaves with it when the edge detaches. An object that a file removed here used to describe survives if
    it carries ``kustomize.toolkit.fluxcd.io/prune: disabled``: that is how a changed template marks a driver.

    Args:
        paths: every path at the head of the repository.

    Returns:
        path -> None to delete it, or its content. The same again on the outcome: no change of any content.
    """
    changes: dict[str, bytes | None] = {path: None for path in paths if _is_workload(path)}
    present = set(paths)
    for path, note in ((BY_HAND_NOTE_PATH, BY_HAND_NOTE), (SECRETS_NOTE_PATH, SECRETS_NOTE)):
        if path not in present:
            changes[path] = note
    return changes


def _is_workload(path: str) -> bool:
    if path in {BY_HAND_NOTE_PATH, SECRETS_NOTE_PATH} or is_namespace_note(path) or path.startswith(DRIVERS_FOLDER):
        return False
    if path.startswith((BY_HAND_FOLDER, SECRETS_FOLDER, *COMPONENT_FOLDERS)):
        return True
    return path.startswith(CLUSTER_FOLDER) and path.removeprefix(CLUSTER_FOLDER) not in DRIVER_FILES


def purge_files(files: Mapping[str, bytes], cluster: UUID, namespace: str) -> Mapping[str, bytes]:
    """The rights to purge, and what has Flux apply them; nothing where no source can be found to copy, or where the
    cluster's release brings no sealed-secrets: kind and keys are somebody else's then.

    Args:
        files: those of ``READ_BY_PURGE`` that are there, path -> content.
        namespace: of the cluster's own objects on the edge.
    """
    release = _released(_manifests(files.get(RELEASE_PATH)))
    own = {manifest_key(one)[1::2]: one for one in _manifests(files.get(SELF_LINK_PATH))}
    source, driver = own.get(("GitRepository", _SELF_LINK)), own.get(("Kustomization", _SELF_LINK))
    if source is None or driver is None or release.get("enabled") is False:
        return {}
    sealing = release.get("namespace")
    grants = _rights(cluster, namespace, sealing if isinstance(sealing, str) and sealing else USUAL_NAMESPACE)
    metadata: JsonObject = {"name": PART, "namespace": namespace, "labels": {"edgewright.dev/cluster": str(cluster)}}
    said = driver["spec"] if isinstance(driver["spec"], Mapping) else {}
    spec: JsonObject = {
        **{name: value for name, value in said.items() if name in _KEPT},
        "path": f"./{RIGHTS_PATH.rpartition('/')[0]}",
        "prune": True,
        "sourceRef": {"kind": "GitRepository", "name": PART},
    }
    part = [{**source, "metadata": metadata}, {**driver, "metadata": metadata, "spec": spec}]
    return {PART_PATH: manifests_yaml(part), RIGHTS_PATH: manifests_yaml(grants)}


def _rights(cluster: UUID, namespace: str, sealing: str) -> Sequence[JsonObject]:
    """To delete the kind, and the Secrets where sealed-secrets keeps its keys; whose names only the edge knows."""
    labels: JsonObject = {"edgewright.dev/cluster": str(cluster), "edgewright.dev/part-of": "bootstrap"}
    subjects: Json = [{"kind": "ServiceAccount", "name": _DETACHER, "namespace": namespace}]

    def pair(prefix: str, metadata: JsonObject, rule: JsonObject) -> list[JsonObject]:
        named: JsonObject = {"name": RIGHTS, "labels": labels, **metadata}
        role: JsonObject = {"apiGroup": _RBAC, "kind": f"{prefix}Role", "name": RIGHTS}
        head: JsonObject = {"apiVersion": f"{_RBAC}/v1", "metadata": named}
        return [
            {**head, "kind": f"{prefix}Role", "rules": [{**rule, "verbs": ["delete"]}]},
            {**head, "kind": f"{prefix}RoleBinding", "roleRef": role, "subjects": subjects},
        ]

    kind: JsonObject = {
        "apiGroups": ["apiextensions.k8s.io"],
        "resources": ["customresourcedefinitions"],
        "resourceNames": ["sealedsecrets.bitnami.com"],
    }
    keys: JsonObject = {"apiGroups": [""], "resources": ["secrets"]}
    return [*pair("Cluster", {}, kind), *pair("", {"namespace": sealing}, keys)]


def _released(manifests: Sequence[JsonObject]) -> JsonObject:
    """The values that the cluster's release has for sealed-secrets."""
    for one in manifests:
        spec = one.get("spec")
        values = spec.get("values") if isinstance(spec, Mapping) else None
        found = values.get(_CHART) if isinstance(values, Mapping) else None
        if isinstance(found, Mapping):
            return found
    return {}


def _manifests(content: bytes | None) -> Sequence[JsonObject]:
    """Those of a generated file, which are checked."""
    return [] if content is None else [one for one in yaml.load_all(content, Loader=yaml.CSafeLoader) if one]
