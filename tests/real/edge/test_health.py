"""What fails on the edge is told at the centre in words, as whose it is, and heals."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from edge_cluster.agent import NAMESPACE
from edge_cluster.site import KUSTOMIZE
from supervised import eventually

from edgewright.domain.wellknown import APP_CLUSTER_CONFIGURATION

if TYPE_CHECKING:
    from edge.conftest import Edge
    from edge_cluster.kubelet import Kubelet

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

SLOW = 180.0
"""Seconds that Flux may take from a commit to a release."""
FAILED = ("False", "ReleaseFailed")
WELL = (("True", "UpToDate"), ("True", "Healthy"))
VALUES = {"sealed-secrets": {"fullnameOverride": "sealed-secrets-controller"}}
"""What the chart has anyhow, so that the release is another one and nothing else is."""
OTHER_CONTROLLER = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: theirs, namespace: default}
spec:
  replicas: 0
  selector: {matchLabels: {app: theirs}}
  template:
    metadata: {labels: {app: theirs}}
    spec: {containers: [{name: one, image: docker.io/bitnami/sealed-secrets-controller:0.27.1}]}
"""
THEIR_KUSTOMIZATION = f"""
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: line-7, namespace: {NAMESPACE}}}
spec:
  interval: 5m
  path: ./nowhere
  prune: false
  sourceRef: {{kind: GitRepository, name: self-link}}
"""
THEIR_RELEASE = f"""
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {{name: theirs, namespace: {NAMESPACE}}}
spec:
  interval: 5m
  chart: {{spec: {{chart: edge-cluster, sourceRef: {{kind: GitRepository, name: helm-charts}}}}}}
  values: {{sealed-secrets: {{enabled: perhaps}}}}
"""
TOO_LONG = f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: a, namespace: default}}
data: {{text: {"x" * (2**20 + 1)}}}
"""
"""Git takes it, the API server does not: values of a ConfigMap are 1 MiB at most."""


def said(edge: Edge) -> tuple[tuple[str, str], tuple[str, str]]:
    return edge.condition("Synced"), edge.condition("Healthy")


def is_well(edge: Edge) -> bool:
    stated = {each["type"]: (each["status"], each["reason"]) for each in edge.shown()["conditions"]}
    return (stated["Synced"], stated.get("Healthy")) == WELL


def test_values_that_the_charts_schema_refuses_are_told_with_helms_sentence_until_they_are_mended(
    edge: Edge, flux: Kubelet
) -> None:
    eventually(lambda: is_well(edge), seconds=SLOW)
    name = f"edge-cluster-{edge.uuid}"
    with flux.paused(KUSTOMIZE):  # else Flux puts back at once what is changed behind its back
        values = {"spec": {"values": {"sealed-secrets": {"enabled": "perhaps"}}}}
        arguments = ("helmrelease", name, "--namespace", NAMESPACE, "--type=merge")
        edge.cluster.kubectl("patch", *arguments, "--patch", json.dumps(values))
        eventually(lambda: said(edge) == (FAILED, FAILED), seconds=SLOW)
        message = edge.message("Healthy")
        assert message.startswith(f"The release {name} (Helm chart edge-cluster@0."), message
        assert "values don't meet the specifications of the schema(s)" in message and "enabled" in message
        assert edge.message("Synced").endswith(message.removesuffix("."))
    edge.cluster.kubectl(
        *("annotate", "--overwrite", "kustomization", "self-link", "--namespace", NAMESPACE),
        "reconcile.fluxcd.io/requestedAt=now",
    )
    eventually(lambda: is_well(edge), seconds=SLOW)


def test_a_chart_that_cannot_be_made_is_told_with_the_sentence_of_source_controller(
    edge: Edge, flux: Kubelet
) -> None:
    eventually(lambda: is_well(edge), seconds=SLOW)
    name = f"edge-cluster-{edge.uuid}"
    with flux.paused(KUSTOMIZE):
        elsewhere = {"spec": {"chart": {"spec": {"chart": "no-such-chart"}}}}
        arguments = ("helmrelease", name, "--namespace", NAMESPACE, "--type=merge")
        edge.cluster.kubectl("patch", *arguments, "--patch", json.dumps(elsewhere))
        eventually(lambda: said(edge) == (FAILED, FAILED), seconds=SLOW)
        ready = "jsonpath={.status.conditions[?(@.type=='Ready')].message}"
        chart = ("helmchart", f"{NAMESPACE}-{name}", "--namespace", NAMESPACE)
        why = edge.cluster.kubectl("get", *chart, "--output", ready)
        message = edge.message("Healthy")
        assert message.startswith(f"The release {name} (Helm chart no-such-chart@") and why in message, (message, why)
    edge.cluster.kubectl(
        *("annotate", "--overwrite", "kustomization", "self-link", "--namespace", NAMESPACE),
        "reconcile.fluxcd.io/requestedAt=back",
    )
    eventually(lambda: is_well(edge), seconds=SLOW)


@pytest.mark.usefixtures("flux")
def test_a_rendering_that_the_edge_cannot_install_is_missing_at_once_and_says_why(edge: Edge) -> None:
    eventually(lambda: is_well(edge), seconds=SLOW)
    edge.cluster.kubectl.apply(OTHER_CONTROLLER)
    before = edge.shown()["revisions"]["desired"]
    entry = f"/v1/app/{APP_CLUSTER_CONFIGURATION}/object/{edge.uuid}"
    configured = edge.centre.api("GET", entry).json()
    answer = edge.centre.api("PUT", entry, json={**configured, "values": VALUES})
    assert answer.is_success, answer.text
    eventually(lambda: edge.shown()["revisions"]["desired"] != before)
    assert edge.condition("Synced")[0] == "False", "no edge has applied what was rendered a moment ago"
    edge.cluster.fetch_now()
    eventually(lambda: said(edge) == (FAILED, FAILED), seconds=SLOW)
    message = edge.message("Healthy")
    assert "This cluster runs sealed-secrets already, as the Deployment default/theirs" in message, message
    assert "(edge-cluster/templates/one-sealed-secrets.yaml)" in message
    edge.cluster.kubectl("delete", "deployment", "theirs", "--namespace", "default")
    eventually(lambda: is_well(edge), seconds=SLOW)


@pytest.mark.usefixtures("flux")
def test_what_an_operator_has_there_is_told_as_theirs_and_keeps_no_commit_back(edge: Edge) -> None:
    eventually(lambda: is_well(edge), seconds=SLOW)
    edge.cluster.kubectl.apply(THEIR_KUSTOMIZATION)
    eventually(lambda: edge.condition("Healthy") == ("False", "ApplyFailed"), seconds=SLOW)
    message = edge.message("Healthy")
    assert message.startswith("Not of Edgewright's making: Flux cannot apply line-7: "), message
    assert "/tmp" not in message and "kustomization-" not in message
    assert edge.condition("Synced") == ("True", "UpToDate")
    edge.cluster.kubectl("delete", "kustomization", "line-7", "--namespace", NAMESPACE)
    eventually(lambda: is_well(edge), seconds=SLOW)


@pytest.mark.usefixtures("flux")
def test_an_operators_release_that_fails_is_told_as_theirs_until_it_is_gone(edge: Edge) -> None:
    eventually(lambda: is_well(edge), seconds=SLOW)
    edge.cluster.kubectl.apply(THEIR_RELEASE)
    eventually(lambda: edge.condition("Healthy") == FAILED, seconds=SLOW)
    message = edge.message("Healthy")
    assert message.startswith("Not of Edgewright's making: The release theirs (Helm chart edge-cluster@0."), message
    assert "values don't meet the specifications of the schema(s)" in message and "enabled" in message
    assert edge.condition("Synced") == ("True", "UpToDate")
    edge.cluster.kubectl("delete", "helmrelease", "theirs", "--namespace", NAMESPACE)
    eventually(lambda: is_well(edge), seconds=SLOW)


@pytest.mark.usefixtures("flux")
def test_a_broken_file_is_named_as_it_is_called_in_the_repository(edge: Edge) -> None:
    eventually(lambda: is_well(edge), seconds=SLOW)
    edge.push_by_hand("app.yaml", "apiVersion: v1\nkind: [\n")
    edge.cluster.fetch_now()
    eventually(lambda: edge.condition("Synced") == ("False", "ApplyFailed"), seconds=SLOW)
    assert "Flux cannot apply by-hand: by-hand/app.yaml is no valid YAML: " in edge.message("Synced")
    edge.push_by_hand("app.yaml", "apiVersion: v1\nkind: ConfigMapp\nmetadata: {name: a, namespace: default}\n")
    edge.cluster.fetch_now()
    eventually(lambda: "ConfigMapp default/a is refused" in edge.message("Synced"), seconds=SLOW)
    edge.push_by_hand("app.yaml", TOO_LONG)
    edge.cluster.fetch_now()
    refusal = "Flux cannot apply by-hand: ConfigMap default/a is refused: "
    eventually(lambda: refusal in edge.message("Synced"), seconds=SLOW)
    assert "Too long: may not be more than 1048576 bytes" in edge.message("Synced")
    assert edge.condition("Synced") == ("False", "ApplyFailed")
    edge.push_by_hand("app.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n")
    edge.cluster.fetch_now()
    eventually(lambda: is_well(edge), seconds=SLOW)
