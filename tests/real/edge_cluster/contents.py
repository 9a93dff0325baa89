"""Everything that a Kubernetes cluster holds, to compare before and after."""

import time
from typing import Any

import httpx

from edge_cluster.cluster import Cluster

COMES_AND_GOES = ("APIService", "ComponentStatus", "Event", "Lease", "EndpointSlice", "Endpoints", "Node")
"""What the cluster itself writes, some of it all the time."""
DIFFERS_ALWAYS = ("resourceVersion", "managedFields", "uid", "creationTimestamp", "generation")
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
NOT_NOW = (httpx.codes.NOT_FOUND, httpx.codes.TOO_MANY_REQUESTS)
PAUSE_SECONDS = 0.2
Contents = dict[str, Any]


def contents(cluster: Cluster) -> Contents:
    """Kind/namespace/name of every object → what somebody has written into it."""
    listed = _listed(cluster)
    while listed is None:
        time.sleep(PAUSE_SECONDS)
        listed = _listed(cluster)
    return {
        "/".join((one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"])): _written(one)
        for one in listed
        if one["kind"] not in COMES_AND_GOES
    }


def _listed(cluster: Cluster) -> list[dict[str, Any]] | None:
    """None: a kind has gone between two questions, or has only just come."""
    found = []
    for path, kind in _kinds(cluster).items():
        answer = cluster.http.get(path)
        if answer.status_code in NOT_NOW:
            return None
        listed = answer.raise_for_status().json()
        found += [{**one, "apiVersion": listed["apiVersion"], "kind": kind} for one in listed["items"]]
    return found


def _kinds(cluster: Cluster) -> dict[str, str]:
    """Path → kind, of every resource that can be listed, in the version that its group prefers."""
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
    return dict(kinds.values())


def _written(one: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in one["metadata"].items() if key not in DIFFERS_ALWAYS}
    return {**{key: value for key, value in one.items() if key != "status"}, "metadata": metadata}
