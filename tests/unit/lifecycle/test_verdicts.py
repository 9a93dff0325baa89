"""What lists say of a cluster follows from what its workflow has published, and the migration says the same."""

import importlib
from datetime import UTC, datetime
from typing import Any

import pytest

from edgewright.domain.cluster import Condition, ConditionStatus, ConditionType, Phase
from edgewright.domain.projection import Projection
from edgewright.domain.verdicts import Trouble, awaited, health_of, is_blocked, trouble_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN
HEARD = (ConditionType.AVAILABLE, TRUE, "LeaseCurrent", "")
SILENT = (ConditionType.AVAILABLE, UNKNOWN, "LeaseExpired", "Last heard at noon.")
APPLIED = (ConditionType.SYNCED, TRUE, "UpToDate", "")
BLOCKED = (ConditionType.BLOCKED, TRUE, "TemplateInvalid", "Mend it.")
PAUSED = (ConditionType.PAUSED, TRUE, "PausedByOperator", "")


def live(*stated: tuple[ConditionType, ConditionStatus, str, str], **more: Any) -> Projection:
    """An active cluster; what is stated later wins."""
    conditions = {
        kind: Condition(type=kind, status=status, reason=reason, message=message, since=NOON)
        for kind, status, reason, message in (HEARD, APPLIED, *stated)
    }
    facts: dict[str, Any] = {"sequence": 1, "phase": Phase.ACTIVE, "ready": True}
    return Projection(**(facts | more), conditions=tuple(conditions.values()))


def synced(
    status: ConditionStatus, reason: str, message: str = ""
) -> tuple[ConditionType, ConditionStatus, str, str]:
    return ConditionType.SYNCED, status, reason, message


CASES = [
    (live(), TRUE, Trouble.NONE, ""),
    (live(synced(FALSE, "Behind", "Not yet.")), TRUE, Trouble.NONE, "Not yet."),
    (live(synced(FALSE, "AwaitingWindow", "At ten.")), TRUE, Trouble.NONE, "At ten."),
    (live(synced(FALSE, "FetchFailed", "No door.")), FALSE, Trouble.UNHEALTHY, "No door."),
    (live(synced(FALSE, "ApplyFailed")), FALSE, Trouble.UNHEALTHY, ""),
    (live(synced(FALSE, "FluxSuspended")), FALSE, Trouble.UNHEALTHY, ""),
    (live(synced(UNKNOWN, "NotReported", "Says nothing.")), UNKNOWN, Trouble.NONE, "Says nothing."),
    (live(SILENT, synced(FALSE, "EdgeSilent", "Silent.")), UNKNOWN, Trouble.SILENT, "Last heard at noon."),
    (live((ConditionType.JOINED, TRUE, "IdentityForked", "Two.")), FALSE, Trouble.UNHEALTHY, ""),
    (live((ConditionType.JOINED, TRUE, "RotationUnproven", "Two.")), FALSE, Trouble.UNHEALTHY, ""),
    (live((ConditionType.JOINED, FALSE, "Registered", "Not yet.")), TRUE, Trouble.NONE, "Not yet."),
    (live((ConditionType.SEALING_KEY_CURRENT, FALSE, "CertificateExpired", "")), FALSE, Trouble.UNHEALTHY, ""),
    (live((ConditionType.SEALING_KEY_CURRENT, UNKNOWN, "NoCertificate", "")), TRUE, Trouble.NONE, ""),
    (live((ConditionType.CLOCK_SYNCED, FALSE, "ClockSkewed", "")), FALSE, Trouble.UNHEALTHY, ""),
    (live(BLOCKED), FALSE, Trouble.BLOCKED, "Mend it."),
    (live(BLOCKED, SILENT, PAUSED, waiting_for="step x"), FALSE, Trouble.BLOCKED, "step x"),
    (live(PAUSED), TRUE, Trouble.PAUSED, ""),
    (live(PAUSED, SILENT), UNKNOWN, Trouble.SILENT, "Last heard at noon."),
    (
        live((ConditionType.ACCEPTED, FALSE, "Pending", "Accept it."), phase=Phase.PENDING_ACCEPTANCE),
        TRUE,
        Trouble.NONE,
        "Accept it.",
    ),
    (live(phase=Phase.COMMISSIONING, ready=False), UNKNOWN, Trouble.NONE, "The commissioning is under way."),
    (live(phase=Phase.DETACHING, ready=False), UNKNOWN, Trouble.NONE, "The cluster is being deleted."),
    (live(SILENT, phase=Phase.DELETED, ready=False), UNKNOWN, Trouble.NONE, ""),
    (live(BLOCKED, phase=Phase.DELETED, ready=False), UNKNOWN, Trouble.NONE, ""),
]


def test_a_cluster_that_has_drifted_is_not_healthy() -> None:
    drifted = live((ConditionType.DRIFTED, TRUE, "PutBack", "Two commits are lost."))
    assert (health_of(drifted), trouble_of(drifted)) == (FALSE, Trouble.UNHEALTHY)


def test_an_edge_on_which_something_fails_is_not_healthy_whatever_it_is() -> None:
    failing = live((ConditionType.HEALTHY, FALSE, "AnyReason", "It failed."))
    assert (health_of(failing), trouble_of(failing)) == (FALSE, Trouble.UNHEALTHY)
    assert awaited(failing) == "It failed."
    silent = live(SILENT, (ConditionType.HEALTHY, UNKNOWN, "EdgeSilent", ""))
    assert (health_of(silent), trouble_of(silent)) == (UNKNOWN, Trouble.SILENT)
    assert health_of(live((ConditionType.HEALTHY, TRUE, "Healthy", ""))) is TRUE


@pytest.mark.parametrize(("projection", "healthy", "trouble", "sentence"), CASES)
def test_lists_say_what_the_glossary_says(
    projection: Projection, healthy: ConditionStatus, trouble: Trouble, sentence: str
) -> None:
    assert (health_of(projection), trouble_of(projection), awaited(projection)) == (healthy, trouble, sentence)


@pytest.mark.parametrize(
    "projection", [*(case[0] for case in CASES), live(BLOCKED, phase=Phase.REMOVED, ready=False)]
)
def test_an_upgraded_database_says_the_same(projection: Projection) -> None:
    migration = importlib.import_module("edgewright.adapters.database.migrations.versions.0008_verdicts_in_lists")
    assert migration._verdicts(projection.model_dump(mode="json")) == {
        "blocked": is_blocked(projection),
        "synced": projection.status_of(ConditionType.SYNCED).value,
        "healthy": health_of(projection).value,
        "trouble": trouble_of(projection),
        "waiting_for": awaited(projection),
    }
