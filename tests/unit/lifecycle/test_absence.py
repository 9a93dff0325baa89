"""What an edge says it lacks becomes a condition, a finding and a refusal, whatever the edge sends."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgewright.domain.absence import (
    FLUX_MENDS,
    FRESH_LINE,
    GRANT,
    MOST_VALUES,
    UnopenedValue,
    absence_findings,
    absence_problem,
    lacking_of,
    missing_of,
    rotation_obstacle,
    unopened_of,
)
from edgewright.domain.cluster import MOST_NAMES, Role
from edgewright.domain.edge_status import read_edge_status
from edgewright.domain.health import edge_health
from edgewright.domain.kubernetes_names import SecretKey

BLIND = {"what": "kustomizations", "right": "list on kustomizations in edgewright"}
UNWRITABLE = {"what": "secrets/flux-secrets", "right": "patch on secrets/flux-secrets in edgewright"}


def said(place: str = "default/db", key: str = "password", sha256: str = "0" * 64) -> dict[str, str]:
    return {"secret": place, "key": key, "sha256": sha256}


@pytest.mark.parametrize(
    ("status", "reason", "words"),
    [
        (
            {"missing": ["GitRepository self-link"]},
            "DriverMissing",
            ("GitRepository self-link is missing", FRESH_LINE),
        ),
        ({"missing": ["Kustomization self-link"]}, "DriverMissing", ("Kustomization self-link is", FRESH_LINE)),
        ({"missing": ["Secret flux-secrets"]}, "DriverMissing", ("Secret flux-secrets is missing", FRESH_LINE)),
        ({"missing": ["Kustomization flux-system"]}, "DriverMissing", ("flux-system is missing", FLUX_MENDS)),
        ({"missing": ["HelmRelease edge-cluster"]}, "DriverMissing", ("edge-cluster is missing", FLUX_MENDS)),
        ({"missing": ["Secret flux-secrets in a"]}, "DriverMissing", ("flux-secrets in a is missing", FLUX_MENDS)),
        ({"missing": ["ConfigMap self-link in a"]}, "DriverMissing", ("self-link in a is missing", FLUX_MENDS)),
        ({"missing": ["Secret flux-secrets", "GitRepository a"]}, "DriverMissing", ("are missing", FRESH_LINE)),
        (
            {"silent": ["source-controller"]},
            "FluxSilent",
            (
                "Flux's source-controller does not answer",
                "a fresh bootstrap line",
                "--selector app=source-controller",
            ),
        ),
        (
            {"silent": ["kustomize-controller", "source-controller"]},
            "FluxSilent",
            ("source-controller, kustomize-controller do not answer",),
        ),
        ({"silent": ["source-controller"], "missing": ["Secret flux-secrets"]}, "DriverMissing", ("flux-secrets",)),
        ({"unknown": [BLIND], "silent": ["source-controller"]}, "CannotBeKnown", (BLIND["right"],)),
        ({"unknown": [BLIND]}, "CannotBeKnown", (BLIND["right"], FRESH_LINE)),
        ({"unknown": [BLIND], "missing": ["GitRepository self-link"]}, "CannotBeKnown", (BLIND["right"],)),
    ],
)
def test_what_keeps_a_commit_back_is_named_with_what_heals_it(
    status: dict[str, Any], reason: str, words: tuple[str, ...]
) -> None:
    problem = absence_problem(read_edge_status(status))
    assert problem is not None and problem.reason == reason
    assert all(each in problem.message for each in words), problem.message


@pytest.mark.parametrize(
    "status",
    [
        {},
        {"missing": [], "unknown": [], "silent": [], "unopened": []},
        {"missing": ["Secret edgewright-agent"]},
        {"unknown": [{"what": "nodes", "right": "list on nodes"}, UNWRITABLE]},
        {"unopened": [said()]},
        {"silent": ["; rm -rf /", "notification-controller"]},
    ],
)
def test_what_keeps_no_commit_back_is_no_problem_of_delivery(status: dict[str, Any]) -> None:
    assert absence_problem(read_edge_status(status)) is None


def test_the_agents_own_secret_is_a_finding_with_what_it_means() -> None:
    health = edge_health(absence_findings(read_edge_status({"missing": ["Secret edgewright-agent"]}), []))
    assert health.reason == "AgentSecretMissing"
    assert health.message == (
        "The Secret edgewright-agent is missing on the edge; a restart of the agent would lose the edge. "
        "Run a fresh bootstrap line on the edge."
    )


def test_findings_name_what_is_missing_first_then_what_is_silent_then_rights_then_values() -> None:
    value = UnopenedValue(SecretKey("default", "db", "password"), "0" * 64)
    status: dict[str, Any] = {"missing": ["GitRepository self-link"], "silent": ["source-controller"]}
    findings = absence_findings(read_edge_status({**status, "unknown": [UNWRITABLE]}), [value])
    health = edge_health(reversed(findings))
    assert health.reason == "DriverMissing"
    others = "Flux's source-controller, right on secrets/flux-secrets, value default/db/password"
    assert f"Also failing: {others}." in health.message
    assert edge_health(findings[1:2]).reason == "FluxSilent"
    assert edge_health(findings[2:3]).reason == "RightMissing"
    assert "default/db/password" in edge_health(findings[3:]).message


@pytest.mark.parametrize(
    ("what", "remedy"),
    [
        ("nodes", FRESH_LINE),
        ("namespaces", FRESH_LINE),
        ("secrets/flux-secrets", FRESH_LINE),
        ("configmaps in line-1", GRANT),
        ("secrets in line-1", GRANT),
        ("widgets.example.com", GRANT),
    ],
)
def test_a_right_that_a_line_does_not_bring_is_to_be_granted(what: str, remedy: str) -> None:
    [finding] = absence_findings(read_edge_status({"unknown": [{"what": what, "right": f"get on {what}"}]}), [])
    assert finding.sentence == f"The agent of the edge lacks a right there: get on {what}. {remedy}"


@pytest.mark.parametrize(
    ("status", "roles", "word"),
    [
        ({"missing": ["Secret flux-secrets"]}, [Role.FLUX], "flux-secrets"),
        ({"missing": ["Secret flux-secrets"]}, list(Role), "flux-secrets"),
        ({"missing": ["Secret edgewright-agent"]}, [Role.AGENT], "edgewright-agent"),
        ({"unknown": [UNWRITABLE]}, [Role.FLUX], "patch on secrets/flux-secrets"),
        ({"missing": ["Secret flux-secrets"]}, [Role.AGENT], None),
        ({"unknown": [BLIND]}, list(Role), None),
        ({}, list(Role), None),
    ],
)
def test_a_rotation_that_cannot_work_is_known_before(
    status: dict[str, Any], roles: list[Role], word: str | None
) -> None:
    obstacle = rotation_obstacle(read_edge_status(status), roles)
    assert obstacle is None if word is None else word in (obstacle or "")


def test_the_first_values_are_read_and_the_rest_is_counted() -> None:
    values, count = unopened_of(
        read_edge_status({"unopened": [said(key=f"k{n}") for n in range(100)], "unopened_count": 100})
    )
    assert (len(values), count) == (MOST_NAMES, 100)
    assert values[0].place == SecretKey("default", "db", "k0")
    assert unopened_of(read_edge_status({"unopened": [said()]}))[1] == 1
    assert unopened_of(read_edge_status({"unopened": [said()], "unopened_count": 10**30}))[1] == MOST_VALUES
    assert unopened_of(read_edge_status({"unopened": [], "unopened_count": 5})) == ([], 0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
LACK = st.fixed_dictionaries({}, optional=dict.fromkeys(("what", "right", "secret", "key", "sha256"), JSON))
STATUS = st.fixed_dictionaries(
    {},
    optional={
        name: JSON | st.lists(LACK | JSON) for name in ("missing", "unknown", "silent", "unopened", "unopened_count")
    },
)


@settings(max_examples=300)
@given(STATUS)
def test_whatever_an_edge_sends_is_bounded_and_harmless(status: dict[str, Any]) -> None:
    absence_problem(read_edge_status(status))
    values, count = unopened_of(read_edge_status(status))
    findings = absence_findings(read_edge_status(status), values)
    assert (len(findings) <= 4 * MOST_NAMES and len(values) <= count) or count == 0
    edge_health(findings)
    rotation_obstacle(read_edge_status(status), list(Role))


def test_a_hostile_edge_cannot_bloat_what_is_said_of_it() -> None:
    long = {"what": "kustomizations", "right": "r" * 50_000 + "\n\x1b[31m"}
    status = {
        "missing": ["x" * 50_000] * 5_000,
        "unknown": [long] * 5_000,
        "silent": ["source-controller"] * 5_000,
        "unopened": [said(key="k" * 50_000)] * 5_000,
    }
    assert len(missing_of(read_edge_status(status))) == len(lacking_of(read_edge_status(status))) == MOST_NAMES
    problem = absence_problem(read_edge_status(status))
    assert problem is not None and len(problem.message) < 1000 and "\x1b" not in problem.message
    assert unopened_of(read_edge_status(status)) == ([], 0), "no key has such a name"
    assert len(edge_health(absence_findings(read_edge_status(status), [])).message) < 1000
