"""Helm's releases are reported beside Flux's other work, and an operator's own where they fail."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from scripted_centre import ReceivedRequest, Reply, ScriptedCentre

from edgewright.agent.flux_conditions import FluxCondition
from edgewright.agent.kubernetes import Kubernetes
from edgewright.agent.objects import HelmRelease, released_of
from edgewright.agent.observation import MOST_OTHERS, Kustomized, Observation, Released
from edgewright.domain.delivery import delivery_problem, flux_findings
from edgewright.domain.edge_status import read_edge_status
from edgewright.domain.health import edge_health

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CLUSTER = "7d6a4c1e-5b0f-4f57-9a43-0f6a2d1c9b8e"
NAME = f"edge-cluster-{CLUSTER}"
FAILED = (
    f"Helm upgrade failed for release edgewright/{NAME} with chart edge-cluster@0.2.0+abc: execution error at "
    "(edge-cluster/templates/one-sealed-secrets.yaml:3:6): This cluster runs sealed-secrets already."
)
RELEASE: dict[str, Any] = {
    "metadata": {"name": NAME, "labels": {"edgewright.dev/cluster": CLUSTER}},
    "spec": {"chart": {"spec": {"chart": "edge-cluster"}}, "values": {"secret": "never reported"}},
    "status": {
        "lastAttemptedRevision": "0.2.0+abc",
        "helmChart": f"edgewright/edgewright-{NAME}",
        "history": [
            {"chartVersion": "0.2.0+abc", "status": "failed"},
            {"chartVersion": "0.1.0+abc", "status": "deployed"},
        ],
        "conditions": [
            {"type": "Reconciling", "status": "True", "message": "Running 'upgrade' action with timeout of 5m0s"},
            {"type": "Ready", "status": "False", "reason": "UpgradeFailed", "message": FAILED},
            {"type": "Released", "status": "False", "reason": "UpgradeFailed", "message": FAILED},
        ],
    },
}


def condition(kind: str, status: str, reason: str = "Why", since: datetime = NOW) -> FluxCondition:
    return FluxCondition(kind, status, reason, "Flux says so.", since)


def test_a_release_is_reported_with_its_chart_and_without_its_values() -> None:
    said = {"reason": "UpgradeFailed", "message": FAILED, "status": "False"}
    assert released_of(HelmRelease.from_dict(RELEASE), CLUSTER).to_json() == {
        "name": NAME,
        "chart": "edge-cluster",
        "suspended": False,
        "applied": "0.1.0+abc",
        "attempted": "0.2.0+abc",
        "conditions": [{"type": "Ready", **said}, {"type": "Released", **said}],
    }


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"spec": [], "status": "x"},
        {"spec": {"chart": 7}, "status": {"history": 7, "conditions": 7}},
        {"status": {"history": [7], "conditions": [7, {}], "helmChart": 7, "lastAttemptedRevision": 7}},
    ],
)
def test_a_release_of_another_flux_is_no_trouble(odd: dict[str, object]) -> None:
    assert released_of(HelmRelease.from_dict({"metadata": {"name": "x"}, **odd}), CLUSTER).name == "x"


def test_a_release_at_work_for_a_moment_is_no_news() -> None:
    failed = Released(NAME, conditions=(condition("Ready", "False"), condition("Released", "False")))
    again = replace(failed, conditions=(condition("Ready", "Unknown"), condition("Released", "False")))
    settled = Observation().with_releases([failed], now=NOW)
    assert settled.with_releases([again], now=NOW + timedelta(minutes=4)) == settled
    assert settled.with_releases([again], now=NOW + timedelta(minutes=6)) != settled
    assert again.fails, "what is tried again has failed all the same"
    for waits in ("SourceNotReady", "DependencyNotReady"):
        well = Observation().with_releases([Released(NAME, conditions=(condition("Ready", "True"),))], now=NOW)
        waiting = Released(NAME, conditions=(condition("Ready", "False", waits),))
        assert well.with_releases([waiting], now=NOW + timedelta(minutes=4)) == well
        assert not waiting.fails


def test_releases_that_cannot_be_seen_are_not_claimed() -> None:
    seen = Observation(kustomizations=())
    assert seen.to_json()["flux"] == {"sources": [], "kustomizations": []}
    assert seen.with_releases([], now=NOW).to_json()["flux"]["releases"] == []


def test_what_an_operator_has_there_is_reported_apart_where_it_fails_and_counts_for_nothing_else() -> None:
    bad = (condition("Ready", "False"),)
    theirs = [
        Kustomized("line", "self-link", applied="main@sha1:old", conditions=bad, own=False),
        Kustomized("by-hand", "self-link", applied="main@sha1:old", own=False),
    ]
    own = Kustomized("by-hand", "self-link", applied="main@sha1:new", conditions=(condition("Ready", "True"),))
    seen = Observation().with_flux([*theirs, own], now=NOW)
    seen = seen.with_releases([Released("plc", conditions=bad, own=False), Released("hmi", own=False)], now=NOW)
    seen = seen.with_flux([*theirs, own], now=NOW)
    assert (seen.revision, seen.kustomizations, seen.releases) == ("main@sha1:new", (own,), ())
    status = seen.to_json()
    assert [(each["kind"], each["name"]) for each in status["flux"]["others"]] == [
        ("Kustomization", "line"),
        ("HelmRelease", "plc"),
    ]
    assert delivery_problem(read_edge_status(status)) is None
    findings = flux_findings(read_edge_status(status))
    assert findings is not None and [each.own for each in findings] == [False, False]
    assert edge_health(findings).reason == "ApplyFailed"


def test_the_number_of_an_operators_failing_objects_is_bounded() -> None:
    bad = (condition("Ready", "False"),)
    seen = Observation(kustomizations=()).with_releases(
        [Released(f"r-{number:03}", conditions=bad, own=False) for number in range(500)], now=NOW
    )
    assert len(seen.to_json()["flux"]["others"]) == MOST_OTHERS


@pytest.fixture
async def kubernetes(kubeconfig: Path) -> AsyncIterator[Kubernetes]:
    """Asks the scripted server, which stands for the API server here."""
    kubernetes = Kubernetes()
    yield kubernetes
    await kubernetes.close()


def api_server(releases: object, charts: Reply) -> Any:
    def reply(request: ReceivedRequest) -> Reply:
        listed = Reply(200, {"metadata": {}, "items": releases}, {"Content-Type": "application/json"})
        return charts if "/helmcharts/" in request.path else listed

    return reply


def waiting_release() -> dict[str, Any]:
    ready = {"type": "Ready", "status": "False", "reason": "SourceNotReady", "message": "HelmChart is not ready"}
    return {**RELEASE, "status": {"helmChart": f"edgewright/edgewright-{NAME}", "conditions": [ready]}}


async def test_a_release_that_waits_says_why_its_chart_cannot_be_made(
    centre: ScriptedCentre, kubernetes: Kubernetes
) -> None:
    stated = {"type": "Ready", "status": "False", "reason": "ChartPullError", "message": "no chart at edge-cluster"}
    chart = Reply(200, {"metadata": {}, "status": {"conditions": [stated]}}, {"Content-Type": "application/json"})
    centre.reply = api_server([waiting_release()], chart)
    [release] = await kubernetes.releases("edgewright", CLUSTER)
    assert release.fails and release.conditions[0].message == "no chart at edge-cluster"
    assert centre.requests[-1].path.endswith(f"/namespaces/edgewright/helmcharts/edgewright-{NAME}")
    status = Observation(kustomizations=()).with_releases([release], now=NOW).to_json()
    problem = delivery_problem(read_edge_status(status))
    assert problem is not None and problem.message.endswith("failed: no chart at edge-cluster")


@pytest.mark.parametrize("answer", [403, 404, 500])
async def test_a_chart_that_cannot_be_read_leaves_what_the_release_says(
    centre: ScriptedCentre, kubernetes: Kubernetes, answer: int
) -> None:
    status = {"kind": "Status", "code": answer}
    centre.reply = api_server([waiting_release()], Reply(answer, status, {"Content-Type": "application/json"}))
    [release] = await kubernetes.releases("edgewright", CLUSTER)
    assert not release.fails and release.conditions[0].message == "HelmChart is not ready"


async def test_an_edge_without_helm_controller_has_no_releases(
    centre: ScriptedCentre, kubernetes: Kubernetes
) -> None:
    missing = Reply(404, {"kind": "Status", "code": 404}, {"Content-Type": "application/json"})
    centre.reply = lambda _request: missing
    assert await kubernetes.releases("edgewright", CLUSTER) == []


async def test_whose_a_release_is_follows_from_its_label(centre: ScriptedCentre, kubernetes: Kubernetes) -> None:
    theirs = {"metadata": {"name": "plc"}, "spec": {}}
    centre.reply = api_server([RELEASE, theirs], Reply(404))
    found = await kubernetes.releases("edgewright", CLUSTER)
    assert {each.name: each.own for each in found} == {NAME: True, "plc": False}
