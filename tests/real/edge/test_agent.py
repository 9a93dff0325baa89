"""The agent on a real Kubernetes cluster, from the pasted line on, under exactly its ServiceAccount's token."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
from typing import TYPE_CHECKING, Any

import pytest
from edge_cluster.agent import ACCOUNT, NAMESPACE
from edge_cluster.site import SOURCE
from free_ports import free_port
from supervised import eventually

if TYPE_CHECKING:
    from edge.conftest import Edge
    from edge_cluster.cluster import Cluster
    from edge_cluster.kubelet import Kubelet

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

LARGEST_RESIDENT = 60_000_000
"""Bytes: what an agent may take of a small machine."""
EVERYBODYS = (".authentication.k8s.io", ".authorization.k8s.io")
"""Kubernetes' own APIs by which anybody asks who they are, and what they may do."""
SECOND_NODE = """
apiVersion: v1
kind: Node
metadata:
  name: node-2
  annotations: {kwok.x-k8s.io/node: fake, node.alpha.kubernetes.io/ttl: "0"}
  labels: {node-role.kubernetes.io/control-plane: ""}
spec:
  taints: [{key: factoryplus.app.amrc.co.uk/specialised, value: laser, effect: NoSchedule}]
"""


CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: by-hand, namespace: default}
data: {a: b}
"""


def hosts(edge: Edge) -> dict[str, dict[str, Any]]:
    return {host["hostname"]: host for host in edge.shown()["hosts"] or ()}


def test_an_attached_edge_is_joined_and_available_and_lists_its_hosts(edge: Edge) -> None:
    eventually(lambda: "node-1" in hosts(edge))
    assert edge.condition("Joined") == ("True", "Reported")
    assert hosts(edge)["node-1"]["ready"] is True
    assert edge.condition("SealingKeyCurrent") == ("True", "Current")
    known = edge.agent.states("attachment")  # one that is only reserved cannot be read yet
    assert (known[0], known[-1]) == ("missing", "found") and set(known) <= {"missing", "unreadable", "found"}
    assert edge.agent.resident < LARGEST_RESIDENT


def test_a_host_that_comes_and_goes_is_reported_with_its_taint(edge: Edge) -> None:
    edge.cluster.kubectl.apply(SECOND_NODE)
    eventually(lambda: hosts(edge).get("node-2", {}).get("ready"))
    shown = hosts(edge)["node-2"]
    assert (shown["arch"], shown["control_plane"], shown["specialised"]) == ("amd64", True, "laser")
    edge.cluster.kubectl("delete", "node", "node-2")
    eventually(lambda: "node-2" not in hosts(edge))


def test_the_revision_that_flux_has_applied_is_what_the_centre_compares(edge: Edge, flux: Kubelet) -> None:
    eventually(lambda: edge.condition("Synced") == ("True", "UpToDate"))
    with flux.paused(SOURCE):
        put_secret(edge, b"s3cr3t")
        eventually(lambda: edge.condition("Synced") == ("False", "Behind"))
    edge.cluster.fetch_now()
    eventually(lambda: edge.condition("Synced") == ("True", "UpToDate"))
    found = edge.cluster.find("secret", "db")
    assert base64.b64decode(found["data"]["password"]) == b"s3cr3t"


@pytest.mark.usefixtures("flux")
def test_a_revision_that_does_not_arrive_names_the_layer_that_keeps_it(edge: Edge) -> None:
    eventually(lambda: edge.condition("Synced") == ("True", "UpToDate"))
    url = edge.cluster.find("gitrepository", "self-link", namespace=NAMESPACE)["spec"]["url"]

    fetch_from(edge, f"http://127.0.0.1:{free_port()}/nobody")
    put_secret(edge, b"first")
    eventually(lambda: edge.condition("Synced") == ("False", "FetchFailed"))
    assert "connection refused" in edge.message("Synced"), edge.message("Synced")

    edge.push_by_hand("map.yaml", CONFIG_MAP.replace("data:", "data: 7 #"))
    fetch_from(edge, url)
    eventually(lambda: edge.condition("Synced") == ("False", "ApplyFailed"))
    assert "ConfigMap" in edge.message("Synced"), edge.message("Synced")

    edge.push_by_hand("map.yaml", CONFIG_MAP)
    edge.cluster.fetch_now()
    eventually(lambda: edge.condition("Synced") == ("True", "UpToDate"), seconds=180)  # Flux retries each minute


def fetch_from(edge: Edge, url: str) -> None:
    """Flux fetches the driving repository from there, at once."""
    patch = ("--type=merge", "--patch", json.dumps({"spec": {"url": url}}))
    edge.cluster.kubectl("patch", "gitrepository", "self-link", "--namespace", NAMESPACE, *patch)


def put_secret(edge: Edge, value: bytes) -> None:
    answer = edge.centre.api("PUT", f"/v1/cluster/{edge.uuid}/secret/default/db/password", content=value)
    assert answer.status_code == 204, answer.text


def test_an_agent_that_was_killed_goes_on(edge: Edge) -> None:
    before = edge.agent.states("centre").count("active")
    edge.agent.kill()
    edge.agent.start()
    eventually(lambda: edge.agent.states("centre").count("active") > before)
    eventually(edge.is_available)


def test_a_clean_end_is_one_and_silence_is_no_goodbye(edge: Edge) -> None:
    assert edge.agent.stop() == 0
    assert edge.agent.log()[-1]["event"] == "ended"
    eventually(lambda: edge.condition("Available") == ("Unknown", "LeaseExpired"))
    edge.agent.start()
    eventually(edge.is_available)


def test_the_lease_is_kept_while_the_api_server_is_away(edge: Edge) -> None:
    server = edge.cluster.supervisor.pid_of("kube-apiserver")
    assert server
    seen = len(edge.agent.states("nodes"))
    os.kill(server, signal.SIGSTOP)
    try:
        eventually(lambda: "unseen" in edge.agent.states("nodes")[seen:])
        heard = edge.shown()["lease"]["last_heard"]
        eventually(lambda: edge.shown()["lease"]["last_heard"] > heard)
    finally:
        os.kill(server, signal.SIGKILL)
        back = edge.cluster.supervisor.wait_for(lambda: edge.agent.states("nodes")[-1] == "seen", seconds=120)
    assert back
    assert edge.condition("Available")[0] == "True"
    assert "node-1" in hosts(edge)


def test_a_centre_that_was_away_is_found_again(edge: Edge) -> None:
    told = len(edge.agent.states("centre"))
    edge.centre.interrupt()
    eventually(lambda: "away" in edge.agent.states("centre")[told:])
    edge.centre.up()
    eventually(lambda: edge.agent.states("centre")[-1] == "active", seconds=400)  # it backs off up to 300 s
    eventually(edge.is_available)
    assert edge.agent.states("centre")[told:] == ["away", "active"]


def test_no_secret_is_in_the_agents_log(edge: Edge) -> None:
    secret = edge.cluster.find("secret", "edgewright-agent", namespace=NAMESPACE)
    password = base64.b64decode(secret["data"]["password"]).decode()
    logged = str(edge.agent.log())
    assert edge.uuid in logged
    assert password not in logged and secret["data"]["password"] not in logged


def test_the_agent_may_do_what_it_does_and_nothing_else(cluster: Cluster) -> None:
    agent = cluster.as_account(NAMESPACE, ACCOUNT)
    listed = agent("auth", "can-i", "--list", "--namespace", NAMESPACE, "--no-headers")
    rights = [re.split(" {2,}", line.strip()) for line in listed.splitlines()]
    own = [each for each in rights if "[/" not in str(each) and not each[0].endswith(EVERYBODYS)]
    assert sorted([each[0], *each[-2:]] for each in own) == [
        ["customresourcedefinitions.apiextensions.k8s.io", "[gitrepositories.source.toolkit.fluxcd.io]", "[get]"],
        ["deployments.apps/scale", "[edgewright-detach]", "[patch]"],
        ["gitrepositories.source.toolkit.fluxcd.io", "[]", "[list]"],
        ["helmcharts.source.toolkit.fluxcd.io", "[]", "[get]"],
        ["helmreleases.helm.toolkit.fluxcd.io", "[]", "[list]"],
        ["kustomizations.kustomize.toolkit.fluxcd.io", "[]", "[list]"],
        ["namespaces", "[]", "[get list]"],
        ["nodes", "[]", "[list]"],
        ["sealedsecrets.bitnami.com", "[]", "[get list]"],
        ["secrets", "[edgewright-agent]", "[get patch]"],
        ["secrets", "[flux-secrets]", "[get patch]"],
    ]
