"""A deletion takes what seals from its edge, or says why not: with the rights that Flux brings for that alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from edge_cluster.grounds import LETTING_GO, told_by
from edge_cluster.site import DETACHER
from supervised import eventually

if TYPE_CHECKING:
    from edge_cluster.contents import Contents
    from edge_cluster.grounds import Grounds, GroundsCluster

pytestmark = [pytest.mark.real, pytest.mark.timeout(1800)]

KIND = "sealedsecrets.bitnami.com"
DEFINITION = ("get", "customresourcedefinition", KIND, "--ignore-not-found", "--output=name")
KEYS = ("get", "secrets", "--namespace=kube-system", f"--selector={KIND}/sealed-secrets-key", "--output=name")
WORKLOAD = """
apiVersion: v1
kind: Namespace
metadata: {name: press}
"""


def runs_with_a_secret(attached: GroundsCluster) -> None:
    attached.push("press.yaml", WORKLOAD)
    attached.put_secret("press", "db", b"s3cr3t")
    attached.grounds.cluster.fetch_now()
    opened = attached.grounds.cluster.find
    eventually(lambda: opened("secret", "db", namespace="press"), seconds=LETTING_GO)


def has_sealing(grounds: Grounds) -> bool:
    kind, keys = (bool(grounds.cluster.kubectl(*words).strip()) for words in (DEFINITION, KEYS))
    assert kind is keys, "nothing is taken by halves"
    return kind


def rights(grounds: Grounds) -> set[str]:
    return {key for key in grounds.contents() if key.endswith("/edgewright-purge")}


def told(attached: GroundsCluster, kind: str) -> list[str]:
    return [each["message"] for each in attached.events() if each["kind"] == kind]


def test_nothing_is_taken_from_a_controller_that_is_somebody_elses(grounds: Grounds, before: Contents) -> None:
    kubectl = grounds.cluster.kubectl
    attached = grounds.attach("paid")
    runs_with_a_secret(attached)
    kubectl("create", "deployment", "theirs", "--replicas=0", "--image=mirror.example/sealed-secrets-controller:1")
    attached.delete(purge="true")
    assert "are removed as well" in attached.api("GET").json()["deletion"]["edge"]
    eventually(attached.is_gone, seconds=2 * LETTING_GO)
    because = "stay on the edge. A controller of sealed-secrets still runs here: default/theirs."
    [said] = told(attached, "edge.not_purged")
    assert because in said and because in attached.api("GET").json()["detail"]
    assert has_sealing(grounds)
    kubectl("delete", "deployment", "theirs")
    eventually(grounds.comparison(before), seconds=LETTING_GO)
    assert not rights(grounds)


def test_kind_and_keys_go_with_rights_that_exist_only_then(grounds: Grounds, before: Contents) -> None:
    attached = grounds.attach("purged")
    runs_with_a_secret(attached)
    kubectl = grounds.cluster.kubectl
    kubectl("create", "deployment", "shows", "--replicas=0", "--image=mirror.example/sealed-secrets-web:1")
    assert not rights(grounds) and has_sealing(grounds)
    with grounds.kubelet.without(DETACHER):
        attached.delete(purge="true")
        eventually(lambda: len(rights(grounds)) == 4, seconds=LETTING_GO)
        eventually(lambda: "await_goodbye" in attached.order(), seconds=LETTING_GO)
    eventually(attached.is_gone, seconds=2 * LETTING_GO)
    assert not has_sealing(grounds) and not rights(grounds)
    [said] = told(attached, "edge.purged")
    assert "were removed from the edge" in said
    assert "were removed from the edge" in attached.api("GET").json()["detail"]
    kinds = attached.kinds()
    assert kinds.index("edge.inventory_empty") < kinds.index("edge.purged") < kinds.index("cluster.deleted")
    states = [line["state"] for line in told_by(grounds, DETACHER) if line["event"] == "detach"]
    assert "purged" in states and states[-1] == "gone"
    kubectl("delete", "deployment", "shows")
    sealing = {key: one for key, one in before.items() if key.endswith(f"/{KIND}")}
    eventually(grounds.comparison({key: one for key, one in before.items() if key not in sealing}))
