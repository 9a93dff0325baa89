"""Brings an edge's own components to the version that is wanted: their manifests, and what has Flux apply them.

Nothing is removed with these Kustomizations (``prune: false``): the edge lives by what they apply. What bootstrap has
made keeps the fields that others own, its owner above all, and what only a newer version brings gets the same owner.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from edgewright.domain.json import Json, JsonObject, canonical_json
from edgewright.domain.own_objects import ANCHOR
from edgewright.domain.rendering.layout import CLUSTER_FOLDER
from edgewright.domain.rendering.manifests import manifests_yaml
from edgewright.domain.upgrades import Component

DRIVERS_OF_COMPONENTS = f"{CLUSTER_FOLDER}components/"
"""One file with a Kustomization for each component."""
COMPONENT_FOLDERS = tuple(f"edo/{component}/" for component in Component)
_SOURCE = "self-link"
_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class WantedComponent:
    """One component in the version that is wanted.

    Args:
        driver: name of the Kustomization.
        manifests: YAML.
        waits: whether the Kustomization is ready only once all that it applies is.
    """

    component: Component
    driver: str
    manifests: bytes
    waits: bool


@dataclass(frozen=True)
class OwnComponents:
    """Those of one edge.

    Args:
        generation: of the cluster.
        anchor: UID of what owns them on the edge, as the edge says; None: it does not.
    """

    wanted: tuple[WantedComponent, ...]
    generation: int
    anchor: str | None = None

    def described(self) -> Json:
        """What the files depend on: equal descriptions, equal files."""
        wanted: list[Json] = [[one.component, one.driver, _sha256(one.manifests), one.waits] for one in self.wanted]
        return {"generation": self.generation, "anchor": self.anchor, "wanted": wanted}


def component_files(own: OwnComponents, cluster: UUID, namespace: str) -> Mapping[str, bytes]:
    """Path -> content of the files that bring the components of a cluster.

    Args:
        namespace: of the cluster's own objects on the edge.
    """
    files: dict[str, bytes] = {}
    for one in own.wanted:
        files[f"edo/{one.component}/{one.component}.yaml"] = one.manifests
        kustomization = _kustomization(own, one, cluster, namespace)
        files[f"{DRIVERS_OF_COMPONENTS}{one.component}.yaml"] = manifests_yaml([kustomization])
    return files


def _kustomization(own: OwnComponents, one: WantedComponent, cluster: UUID, namespace: str) -> JsonObject:
    labels: JsonObject = {
        "edgewright.dev/cluster": str(cluster),
        "edgewright.dev/generation": str(own.generation),
        "edgewright.dev/part-of": "bootstrap",
    }
    spec: dict[str, Json] = {
        "interval": "10m",
        "retryInterval": "1m",
        "timeout": "5m",
        "path": f"./edo/{one.component}",
        "prune": False,
        "wait": one.waits,
        "sourceRef": {"kind": "GitRepository", "name": _SOURCE},
        "commonMetadata": {"labels": labels, "annotations": {"kustomize.toolkit.fluxcd.io/ssa": "Merge"}},
    }
    if own.anchor is not None and _UID.fullmatch(own.anchor):
        spec["patches"] = [{"target": {"kind": ".*"}, "patch": _owner_patch(own.anchor)}]
    return {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": {
            "name": one.driver,
            "namespace": namespace,
            "labels": {"edgewright.dev/cluster": str(cluster)},
        },
        "spec": spec,
    }


def _owner_patch(uid: str) -> str:
    owner: JsonObject = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "name": ANCHOR,
        "uid": uid,
    }
    operation: JsonObject = {"op": "add", "path": "/metadata/ownerReferences", "value": [owner]}
    return canonical_json([operation]).decode()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
