"""Everything that a Kubernetes cluster holds, to compare before and after."""

import json
from typing import Any

from edge_cluster.cluster import Cluster

COMES_AND_GOES = ("APIService", "ComponentStatus", "Event", "Lease", "EndpointSlice", "Endpoints", "Node")
"""What the cluster itself writes, some of it all the time."""
DIFFERS_ALWAYS = ("resourceVersion", "managedFields", "uid", "creationTimestamp", "generation")
Contents = dict[str, Any]


def contents(cluster: Cluster) -> Contents:
    """Kind/namespace/name of every object → what somebody has written into it."""
    listed = _listed(cluster)
    while listed is None:
        listed = _listed(cluster)
    return {
        "/".join((one["kind"], one["metadata"].get("namespace", ""), one["metadata"]["name"])): _written(one)
        for one in json.loads(listed)["items"]
        if one["kind"] not in COMES_AND_GOES
    }


def _listed(cluster: Cluster) -> str | None:
    """None: a kind has gone, or has come, between two questions."""
    kinds = cluster.kubectl("api-resources", "--verbs=list", "--output=name").split()
    done = cluster.kubectl.try_("get", ",".join(kinds), "--all-namespaces", "--output", "json")
    if done.returncode == 0:
        return done.stdout
    if "could not find the requested resource" in done.stderr or "have a resource type" in done.stderr:
        return None
    raise RuntimeError(done.stderr.strip())


def _written(one: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: value for key, value in one["metadata"].items() if key not in DIFFERS_ALWAYS}
    return {**{key: value for key, value in one.items() if key != "status"}, "metadata": metadata}
