"""What is reported of an edge, and which revision counts as applied."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import jsonschema
import pytest
from lightkube.resources.core_v1 import Node

from edgewright.agent.flux_conditions import FluxCondition
from edgewright.agent.objects import GitRepository, Kustomization, fetched_of, host_of, kustomized_of
from edgewright.agent.observation import Fetched, Host, Kustomized, Observation, applied_revision
from edgewright.domain.default_entries import application_schema
from edgewright.domain.wellknown import APP_CLUSTER_STATUS

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SCHEMA = application_schema(APP_CLUSTER_STATUS)
SYSTEM = ("bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "machineID", "operatingSystem")
NODE = {
    "metadata": {"name": "press-1", "labels": {"node-role.kubernetes.io/control-plane": ""}},
    "spec": {"taints": [{"key": "factoryplus.app.amrc.co.uk/specialised", "value": "laser", "effect": "NoSchedule"}]},
    "status": {
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "DiskPressure", "status": "False"}],
        "nodeInfo": {
            **dict.fromkeys((*SYSTEM, "systemUUID"), "?"),
            "architecture": "arm64",
            "kubeletVersion": "v1.33.1",
            "osImage": "Debian 13",
        },
    },
}
CLUSTER = "7d6a4c1e-5b0f-4f57-9a43-0f6a2d1c9b8e"
KUSTOMIZATION = {
    "metadata": {"name": "by-hand", "labels": {"edgewright.dev/cluster": CLUSTER}},
    "spec": {"sourceRef": {"kind": "GitRepository", "name": "self-link"}, "suspend": True},
    "status": {
        "lastAppliedRevision": "main@sha1:a",
        "lastAttemptedRevision": "main@sha1:b",
        "conditions": [
            {
                "type": "Ready",
                "status": "False",
                "reason": "BuildFailed",
                "message": "m" * 5000,
                "lastTransitionTime": "2026-01-01T00:00:00Z",
            },
            {"type": "Reconciling", "status": "True", "reason": "Progressing", "message": "42 s left"},
        ],
    },
}


def node(said: dict[str, Any]) -> Node:
    read = Node.from_dict(said)
    assert isinstance(read, Node)
    return read


def part(name: str, applied: str | None, attempted: str | None = None, source: str = "self-link") -> Kustomized:
    return Kustomized(name, source, applied=applied, attempted=attempted or applied)


def ready(status: str, since: datetime) -> tuple[FluxCondition, ...]:
    return (FluxCondition("Ready", status, "Progressing" if status == "Unknown" else "Succeeded", "", since),)


def test_a_node_is_reported_as_the_edge_status_has_it() -> None:
    assert host_of(node(NODE)).to_json() == {
        "hostname": "press-1",
        "arch": "arm64",
        "k8s_version": "v1.33.1",
        "control_plane": True,
        "os_version": "Debian 13",
        "ready": True,
        "specialised": "laser",
    }


def test_what_a_node_does_not_say_is_left_open() -> None:
    assert host_of(node({"metadata": {"name": "bare"}})).to_json() == {
        "hostname": "bare",
        "control_plane": False,
        "ready": False,
    }


def test_a_kustomization_is_reported_with_its_revisions_and_without_what_passes() -> None:
    found = kustomized_of(Kustomization.from_dict(KUSTOMIZATION), CLUSTER)
    assert found.conditions[0].since == NOW
    assert found.to_json() == {
        "name": "by-hand",
        "source": "self-link",
        "suspended": True,
        "applied": "main@sha1:a",
        "attempted": "main@sha1:b",
        "conditions": [{"type": "Ready", "status": "False", "reason": "BuildFailed", "message": "m" * 1000}],
    }


@pytest.mark.parametrize("odd", [{}, {"spec": [], "status": "x"}, {"status": {"conditions": [7, {}]}}])
def test_a_kustomization_of_another_flux_is_no_trouble(odd: dict[str, object]) -> None:
    assert kustomized_of(Kustomization.from_dict({"metadata": {"name": "x"}, **odd}), CLUSTER).name == "x"


GIT_REPOSITORY = {
    "metadata": {"name": "self-link", "labels": {"edgewright.dev/cluster": CLUSTER}},
    "status": {
        "artifact": {"revision": "main@sha1:a"},
        "conditions": [{"type": "Ready", "status": "False", "reason": "GitOperationFailed", "message": "no route"}],
    },
}


def test_a_source_is_reported_with_what_it_has_fetched_and_why_no_more() -> None:
    assert fetched_of(GitRepository.from_dict(GIT_REPOSITORY), CLUSTER).to_json() == {
        "name": "self-link",
        "suspended": False,
        "fetched": "main@sha1:a",
        "conditions": [
            {"type": "Ready", "status": "False", "reason": "GitOperationFailed", "message": "no route"},
        ],
    }


@pytest.mark.parametrize("odd", [{}, {"spec": [], "status": "x"}, {"status": {"artifact": 7, "conditions": [7]}}])
def test_a_source_of_another_flux_is_no_trouble(odd: dict[str, object]) -> None:
    assert fetched_of(GitRepository.from_dict({"metadata": {"name": "x"}, **odd}), CLUSTER).name == "x"


def test_a_source_at_work_for_a_moment_is_no_news() -> None:
    settled = Observation().with_sources([Fetched("self-link", fetched="a", conditions=ready("True", NOW))])
    at_work = settled.with_sources([Fetched("self-link", fetched="a", conditions=ready("Unknown", NOW))])
    assert at_work == settled
    failed = settled.with_sources([Fetched("self-link", fetched="a", conditions=ready("False", NOW))])
    assert failed != settled


def test_a_status_fits_its_schema_and_the_same_edge_gives_the_same() -> None:
    seen = Observation(
        hosts=(host_of(node(NODE)),), certificate="PEM", versions={"agent": "1", "kubernetes": "v1.33.1"}
    )
    seen = seen.with_sources([fetched_of(GitRepository.from_dict(GIT_REPOSITORY), CLUSTER)])
    found = [kustomized_of(Kustomization.from_dict(KUSTOMIZATION), CLUSTER)]
    first = seen.with_flux(found, now=NOW)
    jsonschema.validate(first.to_json(), SCHEMA)
    again = seen.with_flux(
        [kustomized_of(Kustomization.from_dict(KUSTOMIZATION), CLUSTER)], now=NOW + timedelta(days=1)
    )
    assert again.to_json() == first.to_json()
    assert "2026" not in json.dumps(first.to_json())


def test_an_empty_observation_claims_nothing() -> None:
    assert Observation().to_json() == {}
    assert not Observation(hosts=(Host("a", False, True),)).is_whole


@pytest.mark.parametrize(
    ("parts", "before", "applied"),
    [
        ([], "a", None),
        ([part("x", "a", source="helm-charts")], None, None),
        ([part("x", "a"), part("y", "a")], None, "a"),
        ([part("x", "a", "b"), part("y", "a", "b")], "a", "a"),
        ([part("x", "b"), part("y", "a")], "a", "a"),
        ([part("x", "b"), part("y", "b")], "a", "b"),
        ([part("x", "c"), part("y", "a", "c")], None, "a"),
        ([part("x", "c"), part("y", "b")], "a", "c"),
        ([part("x", "c"), replace(part("y", "a"), conditions=ready("False", NOW))], None, "a"),
        ([part("x", "a"), part("y", None)], None, None),
        ([part("x", "b"), part("y", None)], "b", "b"),
        ([part("x", "c"), part("y", None)], "b", "b"),
        ([part("x", "b"), part("y", "b"), part("z", "old", source="helm-charts")], None, "b"),
    ],
)
def test_a_revision_is_applied_when_every_part_has_it(
    parts: list[Kustomized], before: str | None, applied: str | None
) -> None:
    assert applied_revision(parts, before=before) == applied


def test_flux_at_work_for_a_moment_is_no_news() -> None:
    settled = Observation().with_flux([replace(part("x", "a"), conditions=ready("True", NOW))], now=NOW)
    at_work = [replace(part("x", "a", "b"), conditions=ready("Unknown", NOW))]
    assert settled.with_flux(at_work, now=NOW + timedelta(minutes=4)).to_json() == settled.to_json()
    stuck = settled.with_flux(at_work, now=NOW + timedelta(minutes=6)).to_json()
    assert stuck["flux"]["kustomizations"][0]["conditions"][0]["status"] == "Unknown"
