"""What is wrong on an edge becomes one verdict, in words that name the file, the object or the release."""

from typing import Any

import pytest

from edgewright.domain.cluster import EdgeHealth
from edgewright.domain.delivery import delivery_problem, flux_findings
from edgewright.domain.edge_status import read_edge_status
from edgewright.domain.health import About, Finding, edge_health

RELEASE = "edge-cluster-7d6a4c1e"
SCHEMA = (
    "Helm install failed for release edgewright/edge-cluster-7d6a4c1e with chart edge-cluster@0.2.0+abc: values "
    "don't meet the specifications of the schema(s) in the following chart(s):\nedge-cluster:\n- at '/cluster': "
    "missing"
)
STOPPED = (
    "Helm upgrade failed for release edgewright/edge-cluster-7d6a4c1e with chart edge-cluster@0.2.0+abc: execution "
    "error at (edge-cluster/templates/one-sealed-secrets.yaml:3:6): This cluster runs sealed-secrets already."
)


def said(name: str, *stated: tuple[str, str, str, str], **more: Any) -> dict[str, Any]:
    conditions = [
        {"type": kind, "status": status, "reason": reason, "message": message}
        for kind, status, reason, message in stated
    ]
    return {"name": name, "suspended": False, "conditions": conditions, **more}


def ready(name: str, status: str, message: str = "", *, reason: str = "Why", **more: Any) -> dict[str, Any]:
    return said(name, ("Ready", status, reason, message), **more)


def status_with(**kinds: list[dict[str, Any]]) -> dict[str, Any]:
    return {"flux": {"sources": [], "kustomizations": [], **kinds}}


def health_with(**kinds: list[dict[str, Any]]) -> EdgeHealth:
    findings = flux_findings(read_edge_status(status_with(**kinds)))
    assert findings is not None
    return edge_health(findings)


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (
            SCHEMA,
            "The release edge-cluster-7d6a4c1e (Helm chart edge-cluster@0.2.0+abc) failed: values don't meet the "
            "specifications of the schema(s) in the following chart(s): edge-cluster: - at '/cluster': missing",
        ),
        (
            STOPPED,
            "The release edge-cluster-7d6a4c1e (Helm chart edge-cluster@0.2.0+abc) failed: This cluster runs "
            "sealed-secrets already. (edge-cluster/templates/one-sealed-secrets.yaml)",
        ),
        ("timed out", "The release edge-cluster-7d6a4c1e (Helm chart edge-cluster@0.1.0) failed: timed out"),
    ],
)
def test_a_failed_release_is_told_with_helms_own_sentence(message: str, sentence: str) -> None:
    release = ready(RELEASE, "False", message, chart="edge-cluster", attempted="0.1.0")
    problem = delivery_problem(read_edge_status(status_with(releases=[release])))
    assert problem is not None
    assert (problem.reason, problem.message) == ("ReleaseFailed", sentence)
    assert health_with(releases=[release]) == EdgeHealth(reason="ReleaseFailed", message=f"{sentence}.")


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (
            "failed to decode Kubernetes YAML from /tmp/kustomization-3948/by-hand/app.yaml: MalformedYAMLError: "
            "yaml: line 3: did not find expected key",
            "Flux cannot apply by-hand: by-hand/app.yaml is no valid YAML: line 3: did not find expected key",
        ),
        (
            "kustomize build failed: accumulating resources: accumulation err='accumulating resources from "
            "'app.yaml': MalformedYAMLError: yaml: line 3: did not find expected key in File: app.yaml': must build "
            "at directory: '/var/folders/x/kustomization-1/by-hand/app.yaml': file is not directory",
            "Flux cannot apply by-hand: app.yaml is no valid YAML: line 3: did not find expected key in File: "
            "app.yaml",
        ),
        (
            "failed to decode Kubernetes YAML from /tmp/pods/tmp/7f3e/kustomization-3948/by-hand/app.yaml: "
            "MalformedYAMLError: yaml: line 3: did not find expected key",
            "Flux cannot apply by-hand: by-hand/app.yaml is no valid YAML: line 3: did not find expected key",
        ),
        (
            'ConfigMapp/default/settings dry-run failed: no matches for kind "ConfigMapp" in version "v1"',
            "Flux cannot apply by-hand: ConfigMapp default/settings is refused: no matches for kind "
            '"ConfigMapp" in version "v1"',
        ),
        (
            'ConfigMap/default/a dry-run failed (Invalid): ConfigMap "a" is invalid: []: Too long: may not be more '
            "than 1048576 bytes",
            'Flux cannot apply by-hand: ConfigMap default/a is refused: ConfigMap "a" is invalid: []: Too long: may '
            "not be more than 1048576 bytes",
        ),
        (
            'Namespace/plant dry-run failed (Forbidden): namespaces "plant" is forbidden',
            'Flux cannot apply by-hand: Namespace plant is refused: namespaces "plant" is forbidden',
        ),
        ("kustomization path not found: /tmp/kustomization-1/by-hand", None),
    ],
)
def test_synced_names_the_file_or_the_object_and_no_folder_of_flux(message: str, sentence: str | None) -> None:
    problem = delivery_problem(
        read_edge_status(status_with(kustomizations=[ready("by-hand", "False", message, source="self-link")]))
    )
    assert problem is not None
    assert "/tmp" not in problem.message and "kustomization-" not in problem.message
    if sentence is not None:
        assert problem.message == sentence


def test_synced_waits_for_what_was_rendered_and_healthy_does_not_complain_meanwhile() -> None:
    at_work = ready(RELEASE, "Unknown", "Running 'install' action with timeout of 5m0s")
    problem = delivery_problem(read_edge_status(status_with(releases=[at_work])))
    assert problem is not None and problem.reason == "Progressing"
    assert problem.message == f"The release {RELEASE} is not ready yet: Running 'install' action with timeout of 5m0s"
    unseen = delivery_problem(read_edge_status(status_with(releases=[said(RELEASE)])))
    assert unseen is not None and "helm-controller has not looked at it" in unseen.message
    part = delivery_problem(
        read_edge_status(status_with(kustomizations=[ready("by-hand", "Unknown", "soon", source="self-link")]))
    )
    assert part is not None and part.message == "Flux is at work on by-hand: soon"
    waits = ready(RELEASE, "False", "HelmChart is not ready", reason="SourceNotReady")
    assert delivery_problem(read_edge_status(status_with(releases=[waits]))) is not None
    for calm in (at_work, waits, said(RELEASE), ready(RELEASE, "True")):
        assert health_with(releases=[calm]) == EdgeHealth(reason="Healthy")


def test_a_release_that_is_tried_again_has_still_failed() -> None:
    """helm-controller says Ready Unknown while it runs an action, and keeps what the last one came to."""
    again = said(
        RELEASE, ("Ready", "Unknown", "Progressing", "Running"), ("Released", "False", "InstallFailed", STOPPED)
    )
    assert health_with(releases=[again]).reason == "ReleaseFailed"
    problem = delivery_problem(read_edge_status(status_with(releases=[again])))
    assert problem is not None and problem.reason == "ReleaseFailed"


def test_what_an_operator_has_there_is_told_in_healthy_as_theirs_and_not_in_synced() -> None:
    others = [
        ready("plc", "False", "Helm install failed for release edgewright/plc.v1: no", kind="HelmRelease"),
        ready("line", "False", "path not found", kind="Kustomization", source="self-link"),
    ]
    assert delivery_problem(read_edge_status(status_with(others=others))) is None
    health = health_with(others=others)
    assert health.reason == "ApplyFailed"
    assert health.message == (
        "Not of Edgewright's making: Flux cannot apply line: path not found. Also failing: release plc."
    )


def test_the_centres_own_come_first_and_in_the_order_of_a_commit() -> None:
    health = health_with(
        sources=[ready("helm-charts", "False", "gone")],
        kustomizations=[ready("flux-system", "False", "bad", source="helm-charts")],
        releases=[ready(RELEASE, "False", "no")],
        others=[ready("a", "False", "bad", kind="Kustomization")],
    )
    assert health.reason == "FetchFailed"
    assert health.message == (
        "Flux cannot fetch helm-charts: gone. Also failing: Kustomization flux-system, release "
        "edge-cluster-7d6a4c1e, Kustomization a."
    )


def test_a_suspended_object_of_an_operators_is_their_wish() -> None:
    suspended = ready("line", "True", kind="Kustomization") | {"suspended": True}
    assert health_with(others=[suspended]).reason == "Healthy"
    assert health_with(releases=[ready(RELEASE, "True") | {"suspended": True}]).reason == "FluxSuspended"


def test_the_verdict_is_bounded_however_much_is_wrong() -> None:
    many = [Finding(About.RELEASE, "n" * 5000, False, "ReleaseFailed", "s" * 600) for _ in range(1000)]
    health = edge_health(many)
    assert len(health.message) <= 1000 and "and 996 more." in health.message


def test_an_edge_that_says_nothing_of_flux_gives_nothing_to_judge_by() -> None:
    statuses: list[dict[str, Any]] = [{}, {"flux": {}}, {"flux": 7}]
    assert [flux_findings(read_edge_status(status)) for status in statuses] == [None, None, None]
