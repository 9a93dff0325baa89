"""A deleted cluster lets go of its edge: on a real Kubernetes cluster, under the rights that bootstrap gives."""

from __future__ import annotations

import json
from itertools import groupby
from typing import TYPE_CHECKING, Any

import pytest
from edge_cluster.grounds import LETTING_GO, NAMESPACE, told_by
from edge_cluster.interruptions import interrupting
from edge_cluster.site import AGENT, DETACHER, SOURCE
from supervised import eventually

if TYPE_CHECKING:
    from edge_cluster.contents import Contents
    from edge_cluster.grounds import Grounds, GroundsCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

WORKLOAD = """
apiVersion: v1
kind: Namespace
metadata: {name: press}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: recipe, namespace: press}
data: {a: b}
"""


def found(attached: GroundsCluster, kind: str, name: str, namespace: str = "press") -> Any:
    return attached.grounds.cluster.find(kind, name, namespace=namespace)


def run_workloads(attached: GroundsCluster) -> None:
    """One that was pushed, and a secret, both applied by Flux."""
    attached.push("press.yaml", WORKLOAD)
    attached.put_secret("press", "db", b"s3cr3t")
    attached.grounds.cluster.fetch_now()
    eventually(lambda: found(attached, "configmap", "recipe"), seconds=LETTING_GO)
    eventually(lambda: found(attached, "secret", "db"), seconds=LETTING_GO)


def test_a_deleted_cluster_leaves_its_edge_as_it_was_found(grounds: Grounds, before: Contents) -> None:
    attached = grounds.attach("alive")
    run_workloads(attached)
    password = attached.password()
    assert not grounds.kubelet.runs(DETACHER)

    with grounds.kubelet.paused(SOURCE):
        attached.delete()
        eventually(lambda: "await_empty" in attached.order(), seconds=LETTING_GO)
        assert found(attached, "configmap", "recipe")
        assert "edge.inventory_empty" not in attached.kinds(), "Flux has not taken anything away yet"
    grounds.cluster.fetch_now()
    eventually(lambda: not found(attached, "configmap", "recipe"), seconds=LETTING_GO)
    eventually(lambda: "edge.inventory_empty" in attached.kinds(), seconds=LETTING_GO)

    eventually(attached.is_gone, seconds=LETTING_GO)
    eventually(grounds.comparison(before), seconds=LETTING_GO)
    assert attached.heartbeat(password).status_code == 401
    kinds = attached.kinds()
    assert kinds.index("edge.inventory_empty") < kinds.index("edge.goodbye")
    eventually(lambda: not grounds.kubelet.runs(AGENT) and not grounds.kubelet.runs(DETACHER))
    states = [line["state"] for line in told_by(grounds, DETACHER) if line["event"] == "detach"]
    # An API server that has met a new kind answers 429 for a moment; the detacher waits, and begins anew.
    steps = [state for state, _ in groupby(state for state in states if state != "waiting")]
    assert steps[:2] == ["ordered", "suspended"] and steps[-1] == "gone"
    assert password not in json.dumps([told_by(grounds, name) for name in (AGENT, DETACHER)])


def test_kept_workloads_run_on_and_what_applied_them_goes(grounds: Grounds, before: Contents) -> None:
    attached = grounds.attach("kept")
    run_workloads(attached)
    grounds.cluster.kubectl("create", "configmap", "notes", "--namespace", NAMESPACE)
    attached.delete(workloads="keep")
    eventually(attached.is_gone, seconds=LETTING_GO)
    theirs = {"Namespace//press", "ConfigMap/press/recipe", "Secret/press/db", "SealedSecret/press/db"}
    stays = {*theirs, f"Namespace//{NAMESPACE}", f"ConfigMap/{NAMESPACE}/notes"}
    of_kubernetes = ("ConfigMap/press/kube-root-ca.crt", "ServiceAccount/press/default")

    def new() -> set[str]:
        named = (*of_kubernetes, *(each.replace("press", NAMESPACE) for each in of_kubernetes))
        return grounds.contents().keys() - before.keys() - set(named)

    eventually(lambda: new() == stays, seconds=LETTING_GO)
    labels = grounds.cluster.find("namespace", NAMESPACE)["metadata"]["labels"]
    assert not [label for label in labels if label.startswith("edgewright.dev/")], "somebody lives there"
    grounds.cluster.kubectl("delete", "namespace", "press", NAMESPACE)
    eventually(grounds.comparison(before), seconds=LETTING_GO)


def test_a_detacher_that_is_killed_again_and_again_finishes(grounds: Grounds, before: Contents) -> None:
    with interrupting(grounds.cluster, lambda: grounds.kubelet.kill(DETACHER)) as interruptions:
        grounds.variables["KUBERNETES_SERVICE_PORT"] = str(interruptions.port)
        try:
            attached = grounds.attach("killed")
            starts = grounds.kubelet.starts(DETACHER)
            attached.delete(workloads="keep")
            eventually(grounds.comparison(before), seconds=4 * LETTING_GO)
            eventually(attached.is_gone, seconds=LETTING_GO)
        finally:
            del grounds.variables["KUBERNETES_SERVICE_PORT"]
    assert interruptions.kills >= 4
    needed = interruptions.kills if interruptions.ended_by_a_kill else interruptions.kills + 1
    assert grounds.kubelet.starts(DETACHER) - starts >= needed
    assert "edge.goodbye" in attached.kinds()
