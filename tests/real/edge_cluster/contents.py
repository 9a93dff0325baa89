"""Everything that a Kubernetes cluster holds, to compare before and after."""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import httpx

from edge_cluster.cluster import REQUESTED, Cluster

COMES_AND_GOES = frozenset(
    {"APIService", "ComponentStatus", "EndpointSlice", "Endpoints", "Event", "IPAddress", "Lease", "Node"}
)
"""What the cluster itself writes, some of it all the time."""
DIFFERS_ALWAYS = ("resourceVersion", "managedFields", "uid", "creationTimestamp", "generation")
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
NOT_NOW = (httpx.codes.NOT_FOUND, httpx.codes.TOO_MANY_REQUESTS)
PAUSE_SECONDS = 0.2
Contents = dict[str, Any]


def contents(cluster: Cluster) -> Contents:
    """Kind/namespace/name of every object → what somebody has written into it, but that Flux was asked to look."""
    held = _held(cluster, _kinds(cluster))
    while held is None:
        time.sleep(PAUSE_SECONDS)
        held = _held(cluster, _kinds(cluster))
    return held


class Comparison:
    """Tells, as often as it is asked, whether a cluster holds exactly what it held before.

    It lists the kind that differed last first, and no other kind while that one still differs: a whole list of
    contents is some sixty requests.

    Args:
        before: of ``contents``.
        counts: whether a key of ``contents`` is compared.
    """

    def __init__(self, cluster: Cluster, before: Contents, *, counts: Callable[[str], bool] = lambda _: True) -> None:
        self._cluster, self._counts = cluster, counts
        self._before: dict[str, Contents] = defaultdict(dict)
        for key, one in before.items():
            if counts(key):
                self._before[key.partition("/")[0]][key] = one
        self._differed = ""

    def __call__(self) -> bool:
        paths = _kinds(self._cluster)
        kinds = dict.fromkeys([*paths.values(), *self._before])
        return all(map(partial(self._is_as_before, paths), sorted(kinds, key=lambda kind: kind != self._differed)))

    def _is_as_before(self, paths: Mapping[str, str], kind: str) -> bool:
        held = _held(self._cluster, {path: each for path, each in paths.items() if each == kind})
        counted = held if held is None else {key: one for key, one in held.items() if self._counts(key)}
        same = counted == self._before.get(kind, {})
        if not same:
            self._differed = kind
        return same


def _held(cluster: Cluster, kinds: Mapping[str, str]) -> Contents | None:
    """None: a kind has gone between two questions, or has only just come."""
    held = {}
    for path, kind in kinds.items():
        answer = cluster.http.get(path)
        if answer.status_code in NOT_NOW:
            return None
        listed = answer.raise_for_status().json()
        for one in listed["items"]:
            key = "/".join((kind, one["metadata"].get("namespace", ""), one["metadata"]["name"]))
            held[key] = _written({**one, "apiVersion": listed["apiVersion"], "kind": kind})
    return held


def _kinds(cluster: Cluster) -> dict[str, str]:
    """Path → kind, of every resource that can be listed and is compared, in the version that its group prefers."""
    kinds: dict[tuple[str, str], tuple[str, str]] = {}
    for root in ("/api", "/apis"):
        discovered = cluster.http.get(root, headers={"Accept": DISCOVERY}).raise_for_status().json()
        for group in discovered["items"]:
            name = group["metadata"].get("name", "")
            for version in group["versions"]:
                base = "/".join(part for part in (root, name, version["version"]) if part)
                for each in version.get("resources", ()):
                    if "list" in each["verbs"]:
                        path = f"{base}/{each['resource']}"
                        kinds.setdefault((name, each["resource"]), (path, each["responseKind"]["kind"]))
    return {path: kind for path, kind in kinds.values() if kind not in COMES_AND_GOES}


def _written(one: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in one["metadata"].items() if key not in DIFFERS_ALWAYS}
    annotations = {key: value for key, value in metadata.pop("annotations", {}).items() if key != REQUESTED}
    if annotations:
        metadata["annotations"] = annotations
    return {**{key: value for key, value in one.items() if key != "status"}, "metadata": metadata}
