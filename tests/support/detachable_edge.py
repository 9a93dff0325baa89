"""A Kubernetes cluster in memory, as far as leaving it goes: owners, finalizers, and a Flux that sees to them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from edgewright.agent.cluster_objects import (
    ANCHORS,
    DEFINITIONS,
    DEPLOYMENTS,
    GRANTS,
    NAMESPACES,
    SECRETS,
    Container,
    Found,
    Kind,
    Owner,
)
from edgewright.agent.purging import DEFINITION, KEY_LABEL, SEALED
from edgewright.errors import Forbidden

CLUSTER, GENERATION = "cluster", 1
KUSTOMIZATIONS = Kind("kustomize.toolkit.fluxcd.io", "v1", "kustomizations", "Kustomization", True)
RELEASES = Kind("helm.toolkit.fluxcd.io", "v2", "helmreleases", "HelmRelease", True)
SOURCES = Kind("source.toolkit.fluxcd.io", "v1", "gitrepositories", "GitRepository", True)
MAPS = Kind("", "v1", "configmaps", "ConfigMap", True)
FLUX_KINDS = (KUSTOMIZATIONS, RELEASES, SOURCES)
KINDS = (*FLUX_KINDS, SEALED, SECRETS, MAPS, DEPLOYMENTS, NAMESPACES, DEFINITIONS, *GRANTS)
ANCHOR_UID = "uid-anchor"
OWNED = (Owner(ANCHORS.group, "ClusterRole", ANCHOR_UID),)
OF_CLUSTER = {"edgewright.dev/cluster": CLUSTER}
OURS = {**OF_CLUSTER, "edgewright.dev/generation": "1", "edgewright.dev/part-of": "bootstrap"}
FLUX_FINALIZER = ("finalizers.fluxcd.io",)


class DetacherKilled(BaseException):
    """The detacher is gone in this moment."""


@dataclass
class BootstrappedEdge:
    """After bootstrap: Flux and its kinds, the agent, a Kustomization with a workload, a release with another.

    Args:
        brings_flux: whether bootstrap brought Flux; else it was there before.
        flux_runs: whether its controllers do what they should.
        is_busy: ``self-link`` is at work when it is deleted: it applies everything once more before it goes, a
            Kustomization that has just come among it.
    """

    brings_flux: bool = True
    flux_runs: bool = True
    is_busy: bool = False
    objects: dict[str, Found] = field(default_factory=dict)
    suspended: set[str] = field(default_factory=set)
    workloads: dict[str, str] = field(default_factory=dict)
    """Workload → UID of what has applied it."""
    changes: list[str] = field(default_factory=list)
    containers_of: dict[str, Container] = field(default_factory=dict)
    """Containers of Deployments, by the UIDs of these."""
    killed_in: int = 0

    def __post_init__(self) -> None:
        self.add(ANCHORS, "edgewright-anchor", uid=ANCHOR_UID, labels={**OURS, "edgewright.dev/part-of": ""})
        for namespace in ("edgewright", "flux-system"):
            self.add(NAMESPACES, namespace, **(_ours() if self.brings_flux or namespace == "edgewright" else {}))
        self.add(SECRETS, "edgewright-agent", "edgewright", **_ours())
        for name in ("edgewright-agent", "edgewright-detach"):
            self.add(DEPLOYMENTS, name, "edgewright", **_ours())
        mine = _ours() if self.brings_flux else {}
        for name in ("kustomize-controller", "source-controller"):
            self.add(DEPLOYMENTS, name, "flux-system", **mine)
        for kind in FLUX_KINDS:
            self.add(DEFINITIONS, kind.full_name, **mine)
        held: dict[str, Any] = {"labels": OF_CLUSTER, "finalizers": FLUX_FINALIZER}
        self.add(SOURCES, "self-link", "edgewright", **{**_ours(), "finalizers": FLUX_FINALIZER})
        self.add(KUSTOMIZATIONS, "self-link", "edgewright", **{**_ours(), "finalizers": FLUX_FINALIZER})
        self.workloads["press"] = self.add(KUSTOMIZATIONS, "by-hand", "edgewright", **held).uid
        self.workloads["chart"] = self.add(RELEASES, "edge-cluster", "edgewright", **held).uid
        if not self.brings_flux:
            self.add(KUSTOMIZATIONS, "theirs", "flux-system", finalizers=FLUX_FINALIZER)
        self.before = {each.uid for each in self.objects.values() if not each.owners} - {ANCHOR_UID}

    def add(self, kind: Kind, name: str, namespace: str = "", uid: str = "", **more: Any) -> Found:
        found = Found(kind, name, uid or f"uid-{kind.plural}-{namespace}-{name}", namespace, **more)
        self.objects[found.uid] = found
        return found

    def add_sealing(self) -> None:
        """The kind SealedSecret and a key, as our release leaves them behind."""
        self.add(DEFINITIONS, DEFINITION)
        self.add(SECRETS, "sealed-secrets-key1", "kube-system", labels={KEY_LABEL: "active"})
        self.before |= {"uid-customresourcedefinitions--" + DEFINITION, "uid-secrets-kube-system-sealed-secrets-key1"}

    def grant_purge(self) -> None:
        """Flux has applied the rights to purge."""
        self.add(KUSTOMIZATIONS, "edge-purge", "edgewright", labels=OF_CLUSTER, finalizers=FLUX_FINALIZER)
        for kind in GRANTS:
            self.add(kind, "edgewright-purge", "kube-system" if kind.namespaced else "", labels=OURS)

    def kill_after(self, changes: int) -> None:
        """The detacher that begins now is killed after so many changes."""
        self.killed_in = changes

    def names(self, kind: Kind) -> set[str]:
        return {each.name for each in self.objects.values() if each.kind == kind}

    # --- as the detacher sees it -----------------------------------------------------------------------

    async def kinds(self) -> list[Kind]:
        defined = self.names(DEFINITIONS)
        return [kind for kind in KINDS if kind not in (*FLUX_KINDS, SEALED) or kind.full_name in defined]

    async def of(
        self, kind: Kind, *, labels: Mapping[str, str | None] | None = None, namespace: str = ""
    ) -> list[Found]:
        def bears(each: Found) -> bool:
            wanted = (labels or {}).items()
            return all(name in each.labels and value in (None, each.labels[name]) for name, value in wanted)

        return [
            each
            for each in self.objects.values()
            if each.kind == kind and bears(each) and namespace in ("", each.namespace)
        ]

    async def containers(self) -> list[tuple[Found, Container]]:
        return [(self.objects[uid], each) for uid, each in self.containers_of.items() if uid in self.objects]

    async def get(self, kind: Kind, name: str) -> Found | None:
        return next(iter([each for each in await self.of(kind) if each.name == name]), None)

    async def change(self, found: Found, patch: Mapping[str, Any]) -> None:
        held = self.objects.get(found.uid)
        if held is None:
            return
        if patch.get("spec", {}).get("suspend"):
            self.suspended.add(held.uid)
        metadata = patch.get("metadata", {})
        for name in ("labels", "annotations"):
            merged = {**getattr(held, name), **metadata.get(name, {})}
            kept: Any = {key: value for key, value in merged.items() if value is not None}
            held = replace(held, **{name: kept})
        if "finalizers" in metadata:
            held = replace(held, finalizers=())
        if "ownerReferences" in metadata:
            held = replace(held, owners=())
        self.objects[held.uid] = held
        if held.deleting and not held.finalizers:
            self._end(held)
        self._changed(f"change {found}")

    async def remove(self, found: Found, *, foreground: bool = False, tries: bool = False) -> None:
        is_sealing = KEY_LABEL in found.labels or found.name == DEFINITION
        if is_sealing and "edgewright-purge" not in self.names(GRANTS[-1]):
            raise Forbidden("No.", code="kubernetes_forbidden", where=found.kind.plural)
        if found.uid in self.objects and not tries:
            self._remove(self.objects[found.uid])
            self._changed(f"remove {found}")

    # --- what the cluster does by itself ---------------------------------------------------------------

    def _remove(self, found: Found) -> None:
        if found.finalizers and found.kind in FLUX_KINDS and self._flux_lives():
            if self.is_busy and (found.kind, found.name) == (KUSTOMIZATIONS, "self-link"):
                self.is_busy = False
                for name in ("by-hand", "late"):
                    late: dict[str, Any] = {"labels": OF_CLUSTER, "finalizers": FLUX_FINALIZER}
                    self.workloads[name] = self.add(KUSTOMIZATIONS, name, "edgewright", **late).uid
                    self.suspended.discard(self.workloads[name])
            if found.uid not in self.suspended:
                self.workloads = {name: by for name, by in self.workloads.items() if by != found.uid}
                if found.name == "edge-purge":
                    self._each(lambda each: each.name == "edgewright-purge")
            found = replace(found, finalizers=())
        if found.finalizers:
            self.objects[found.uid] = replace(found, deleting=True)
        else:
            self._end(found)

    def _end(self, found: Found) -> None:
        del self.objects[found.uid]
        self._each(lambda each: any(owner.uid == found.uid for owner in each.owners))
        if found.kind == DEFINITIONS:
            self._each(lambda each: each.kind in FLUX_KINDS and each.kind.full_name == found.name)
        if found.kind == NAMESPACES:
            self._each(lambda each: each.namespace == found.name)

    def _each(self, goes: Callable[[Found], bool]) -> None:
        for each in [each for each in self.objects.values() if goes(each)]:
            if each.uid in self.objects:
                self._remove(each)

    def _flux_lives(self) -> bool:
        return self.flux_runs and "kustomize-controller" in self.names(DEPLOYMENTS)

    def _changed(self, what: str) -> None:
        self.changes.append(what)
        self.killed_in -= 1
        if self.killed_in == 0:
            raise DetacherKilled


def _ours() -> dict[str, Any]:
    return {"labels": OURS, "owners": OWNED}
