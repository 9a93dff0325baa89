"""Edges that are away when their cluster is deleted, and come back; removal and recreation of a deployed cluster."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from edge_cluster.grounds import LETTING_GO, NAMESPACE
from edge_cluster.site import AGENT, DETACHER
from supervised import eventually

if TYPE_CHECKING:
    from edge_cluster.contents import Contents
    from edge_cluster.grounds import Grounds, GroundsCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

CONFIGURATION = "bdb13634-0b3d-4e38-a065-9d88c12ee78d"
WORKLOAD = """
apiVersion: v1
kind: ConfigMap
metadata: {name: recipe, namespace: default}
data: {a: b}
"""


def recipe(attached: GroundsCluster) -> Any:
    return attached.grounds.cluster.find("configmap", "recipe")


def release_on_the_edge(attached: GroundsCluster, name: str) -> Any:
    return attached.grounds.cluster.find("helmrelease", name, namespace=NAMESPACE)


def values_of(release: Any) -> Any:
    return (release or {}).get("spec", {}).get("values", {})


def test_an_edge_that_comes_back_after_a_forced_deletion_is_cleaned_and_gets_nothing_else(
    grounds: Grounds, before: Contents
) -> None:
    attached = grounds.attach("dead")
    attached.push("recipe.yaml", WORKLOAD)
    grounds.cluster.fetch_now()
    eventually(lambda: recipe(attached), seconds=LETTING_GO)
    password = attached.password()
    with grounds.kubelet.without(AGENT):
        attached.delete(force="true")
        eventually(attached.is_gone, seconds=LETTING_GO)
        told = attached.heartbeat(password).json()
        assert (told["state"], told["detach_order"]["workloads"]) == ("detach-only", "remove")
        assert attached.put_status(password) == 403
        assert recipe(attached) and not grounds.kubelet.runs(DETACHER), "nobody has told the edge"
    eventually(grounds.comparison(before), seconds=2 * LETTING_GO)
    assert recipe(attached) is None, "Flux has taken away what it had applied"
    assert attached.heartbeat(password).status_code == 401


def test_without_an_agent_flux_still_empties_the_edge_and_the_deadline_ends_the_deletion(
    grounds: Grounds, before: Contents
) -> None:
    attached = grounds.attach("half-dead")
    attached.push("recipe.yaml", WORKLOAD)
    grounds.cluster.fetch_now()
    eventually(lambda: recipe(attached), seconds=LETTING_GO)
    with grounds.kubelet.without(AGENT):
        attached.delete()
        eventually(lambda: "await_empty" in attached.order(), seconds=LETTING_GO)
        grounds.cluster.fetch_now()
        eventually(lambda: recipe(attached) is None, seconds=LETTING_GO)
        attached.delete(deadline="1s")
        eventually(attached.is_gone, seconds=LETTING_GO)
        assert "edge.goodbye" not in attached.kinds()
    eventually(grounds.comparison(before), seconds=2 * LETTING_GO)


def test_a_removed_cluster_stays_as_it_is_is_recreated_in_place_and_is_deleted_from_its_rest(
    grounds: Grounds, before: Contents
) -> None:
    attached = grounds.attach("removed")
    entry = f"/v1/app/{CONFIGURATION}/object/{attached.uuid}"
    grounds.cluster.fetch_now()
    eventually(lambda: attached.condition("Synced")[0] == "True", seconds=LETTING_GO)
    body = grounds.centre.api("GET", entry).json()
    deployed = grounds.contents()
    assert grounds.centre.api("DELETE", entry).status_code == 204
    password = attached.password()
    eventually(lambda: attached.heartbeat(password).json()["state"] == "suspended", seconds=LETTING_GO)
    assert grounds.contents().keys() == deployed.keys()

    changed = {**body, "values": {"global": {"new": "chart"}}}
    assert grounds.centre.api("PUT", entry, json=changed).status_code == 201
    eventually(lambda: attached.heartbeat(password).json()["state"] == "active", seconds=LETTING_GO)
    eventually(lambda: grounds.centre.is_ready("removed"), seconds=LETTING_GO)
    grounds.cluster.fetch_now()
    found = f"edge-cluster-{attached.uuid}"
    eventually(
        lambda: values_of(release_on_the_edge(attached, found)).get("global") == {"new": "chart"}, seconds=LETTING_GO
    )

    assert grounds.centre.api("DELETE", entry).status_code == 204
    eventually(lambda: attached.heartbeat(password).json()["state"] == "suspended", seconds=LETTING_GO)
    attached.delete(workloads="keep")
    eventually(attached.is_gone, seconds=2 * LETTING_GO)
    eventually(grounds.comparison(before), seconds=LETTING_GO)
    assert "edge.goodbye" in attached.kinds()


def test_recreated_for_new_hardware_only_the_new_generation_is_let_go(grounds: Grounds, before: Contents) -> None:
    attached = grounds.attach("moved")
    old = attached.password()
    assert attached.api("POST", "/recreate", json={"new_hardware": True}).status_code == 202
    eventually(lambda: attached.heartbeat(old).status_code == 401, seconds=LETTING_GO)
    eventually(lambda: attached.api("GET").json()["ready"], seconds=LETTING_GO)
    assert not grounds.kubelet.runs(DETACHER) and f"Secret/{NAMESPACE}/{AGENT}" in grounds.contents()
    attached.paste()
    assert attached.password() != old
    attached.delete(workloads="keep")
    eventually(attached.is_gone, seconds=LETTING_GO)
    eventually(grounds.comparison(before), seconds=LETTING_GO)


def test_an_edge_that_was_attached_from_manifests_is_let_go_like_any_other(
    grounds: Grounds, before: Contents
) -> None:
    attached = grounds.attach("by-hand", by_hand=True)
    attached.delete(workloads="keep")
    eventually(grounds.comparison(before), seconds=2 * LETTING_GO)
    eventually(attached.is_gone, seconds=LETTING_GO)
    assert "edge.goodbye" in attached.kinds()


def test_what_is_killed_of_the_centre_meanwhile_loses_no_goodbye(grounds: Grounds, before: Contents) -> None:
    attached = grounds.attach("interrupted")
    with grounds.kubelet.without(DETACHER):
        attached.delete(workloads="keep")
        eventually(lambda: "await_goodbye" in attached.order(), seconds=LETTING_GO)
        killed = {name: grounds.centre.children()[name] for name in ("temporal", "worker", "gateway")}
        for pid in killed.values():
            os.kill(pid, signal.SIGKILL)
    eventually(grounds.comparison(before), seconds=2 * LETTING_GO)
    eventually(lambda: answers_that_it_is_gone(attached), seconds=LETTING_GO)
    assert "edge.goodbye" in attached.kinds()


def answers_that_it_is_gone(attached: GroundsCluster) -> bool:
    """While the gateway is on its way back nobody answers."""
    try:
        return attached.is_gone()
    except httpx.TransportError:
        return False
