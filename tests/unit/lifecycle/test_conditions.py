"""Conditions tell the truth, and keep their time."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from edgewright.domain.cluster import (
    Acceptance,
    CertificateFacts,
    Condition,
    ConditionStatus,
    ConditionType,
    DeliveryProblem,
    Desired,
    EdgeHealth,
    Lease,
    LeaseState,
    Resealing,
    Wanted,
)
from edgewright.domain.conditions import KEY_AGE_LIMIT, Obstacle, conditions_of, next_review

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
YEAR = timedelta(days=365)


def wanted(**changes: Any) -> Wanted:
    facts: dict[str, Any] = {
        "uuid": UUID(int=1),
        "name": "press-shop",
        "namespace": "edgewright",
        "generation": 1,
        "change": 1,
        "commissioning": 1,
        "desired": Desired.PRESENT,
    }
    return Wanted(**(facts | changes))


def certificate(*, age: timedelta, life: timedelta = 10 * YEAR) -> CertificateFacts:
    return CertificateFacts(fingerprint="f" * 64, not_before=NOW - age, not_after=NOW - age + life, taken_at=NOW)


def state(
    kind: ConditionType,
    facts: Wanted,
    *,
    commissioned: bool = True,
    obstacle: Obstacle | None = None,
    desired_revision: str | None = None,
    now: datetime = NOW,
    before: Sequence[Condition] = (),
) -> Condition:
    found = conditions_of(
        facts,
        commissioned=commissioned,
        waiting_for="",
        obstacle=obstacle,
        desired_revision=desired_revision,
        now=now,
        before=before,
    )
    return next(condition for condition in found if condition.type is kind)


def heard(state_: LeaseState, offset: float | None = None) -> Lease:
    return Lease(state=state_, epoch=1, last_heard=NOW - timedelta(hours=1), clock_offset_seconds=offset)


LOST = tuple(f"default/db/key-{number:02}" for number in range(12))
YOUNG = {"certificate": certificate(age=timedelta(1))}


def resealing(*lost: str, left: int = 0, ended: bool = False) -> Resealing:
    return Resealing(
        id=UUID(int=1),
        asked_at=NOW,
        asked_by="token:ann",
        secrets=50,
        left=left,
        unreadable=lost,
        ended_at=NOW if ended else None,
    )


@pytest.mark.parametrize(
    ("kind", "changes", "status", "reason"),
    [
        (ConditionType.ACCEPTED, {}, "Unknown", "NotRegistered"),
        (ConditionType.ACCEPTED, {"acceptance": Acceptance.PENDING}, "False", "Pending"),
        (ConditionType.ACCEPTED, {"acceptance": Acceptance.REJECTED}, "False", "Rejected"),
        (ConditionType.ACCEPTED, {"acceptance": Acceptance.ACCEPTED}, "True", "Accepted"),
        (ConditionType.JOINED, {}, "False", "AwaitingBootstrap"),
        (ConditionType.JOINED, {"bootstrapped": True}, "False", "Registered"),
        (ConditionType.JOINED, {"edge_reported_at": NOW}, "True", "Reported"),
        (ConditionType.JOINED, {"edge_reported_at": NOW, "rotation_problem": "unused"}, "True", "RotationUnproven"),
        (
            ConditionType.JOINED,
            {"edge_reported_at": NOW, "rotation_problem": "unused", "identity_problem": "two"},
            "True",
            "IdentityForked",
        ),
        (ConditionType.AVAILABLE, {}, "Unknown", "NoHeartbeat"),
        (ConditionType.AVAILABLE, {"lease": heard(LeaseState.CURRENT)}, "True", "LeaseCurrent"),
        (ConditionType.AVAILABLE, {"lease": heard(LeaseState.EXPIRED)}, "Unknown", "LeaseExpired"),
        (ConditionType.AVAILABLE, {"detached_at": NOW, "lease": heard(LeaseState.CURRENT)}, "False", "Detached"),
        (ConditionType.SEALING_KEY_CURRENT, {}, "Unknown", "NoCertificate"),
        (ConditionType.SEALING_KEY_CURRENT, {"certificate_problem": "weak"}, "False", "CertificateRefused"),
        (ConditionType.SEALING_KEY_CURRENT, {"certificate": certificate(age=timedelta(1))}, "True", "Current"),
        (ConditionType.SEALING_KEY_CURRENT, {"certificate": certificate(age=timedelta(91))}, "False", "KeyOld"),
        (
            ConditionType.SEALING_KEY_CURRENT,
            {"certificate": certificate(age=YEAR, life=YEAR)},
            "False",
            "CertificateExpired",
        ),
        (ConditionType.SEALING_KEY_CURRENT, {**YOUNG, "resealing": resealing(left=2)}, "True", "Resealing"),
        (ConditionType.SEALING_KEY_CURRENT, {**YOUNG, "resealing": resealing(ended=True)}, "True", "Current"),
        (ConditionType.SEALING_KEY_CURRENT, {**YOUNG, "resealing": resealing(*LOST, left=1)}, "False", "Unreadable"),
        (
            ConditionType.SEALING_KEY_CURRENT,
            {**YOUNG, "resealing": resealing(*LOST, ended=True)},
            "False",
            "Unreadable",
        ),
        (ConditionType.SEALING_KEY_CURRENT, {"resealing": resealing(*LOST)}, "Unknown", "NoCertificate"),
        (ConditionType.CLOCK_SYNCED, {}, "Unknown", "NotReported"),
        (ConditionType.CLOCK_SYNCED, {"lease": heard(LeaseState.CURRENT, 3.0)}, "True", "InStep"),
        (ConditionType.CLOCK_SYNCED, {"lease": heard(LeaseState.CURRENT, -3600.0)}, "False", "ClockSkewed"),
        (ConditionType.PAUSED, {"paused": True}, "True", "PausedByOperator"),
        (ConditionType.DRIFTED, {"drift": "lost"}, "True", "PutBack"),
        (ConditionType.COMMISSIONED, {"desired": Desired.REMOVED}, "False", "Removed"),
    ],
)
def test_conditions(kind: ConditionType, changes: dict[str, Any], status: str, reason: str) -> None:
    condition = state(kind, wanted(**changes))
    assert (condition.status, condition.reason) == (status, reason)


def test_drift_is_stated_from_the_first_one_on() -> None:
    drifted = state(ConditionType.DRIFTED, wanted(drift="lost"))
    assert drifted.message == "lost"
    mended = state(ConditionType.DRIFTED, wanted(), before=[drifted])
    assert (mended.status, mended.reason) == ("False", "Mended")
    with pytest.raises(StopIteration):
        state(ConditionType.DRIFTED, wanted())


def test_what_is_lost_is_named_as_far_as_a_sentence_goes_and_progress_is_counted() -> None:
    under_way = state(ConditionType.SEALING_KEY_CURRENT, wanted(**YOUNG, resealing=resealing(left=2)))
    assert under_way.message == "48 of 50 Secrets are re-sealed."
    lost = state(ConditionType.SEALING_KEY_CURRENT, wanted(**YOUNG, resealing=resealing(*LOST, ended=True)))
    assert "default/db/key-09 and 2 more any more. Enter them again." in lost.message
    assert "key-10" not in lost.message


def test_a_powered_off_cluster_never_shows_available() -> None:
    silent = wanted(lease=heard(LeaseState.EXPIRED), edge_reported_at=NOW, acceptance=Acceptance.ACCEPTED)
    assert state(ConditionType.AVAILABLE, silent).status is not ConditionStatus.TRUE


def test_synced_is_about_descent_not_equality() -> None:
    facts = wanted(observed_revision="b" * 40, observed_descends=True)
    assert state(ConditionType.SYNCED, facts, desired_revision="a" * 40).status is ConditionStatus.TRUE
    behind = wanted(observed_revision="b" * 40, observed_descends=False)
    assert state(ConditionType.SYNCED, behind, desired_revision="a" * 40).status is ConditionStatus.FALSE


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, "Behind"),
        ({"window_opens_at": NOW}, "AwaitingWindow"),
        ({"window_opens_at": NOW, "lease": heard(LeaseState.EXPIRED)}, "EdgeSilent"),
        ({"delivery_problem": DeliveryProblem(reason="ApplyFailed", message="Flux says so.")}, "ApplyFailed"),
        ({"delivery_problem": None, "lease": heard(LeaseState.EXPIRED)}, "EdgeSilent"),
        (
            {
                "delivery_problem": DeliveryProblem(reason="FetchFailed", message="It said so."),
                "lease": heard(LeaseState.EXPIRED),
            },
            "EdgeSilent",
        ),
    ],
)
def test_a_revision_that_does_not_arrive_names_the_layer(changes: dict[str, Any], reason: str) -> None:
    facts = wanted(observed_revision="b" * 40, observed_descends=False, **changes)
    late = state(ConditionType.SYNCED, facts, desired_revision="a" * 40)
    assert (late.status, late.reason) == ("False", reason)
    assert "bbbbbbbbbbbb" in late.message and "aaaaaaaaaaaa" in late.message


@pytest.mark.parametrize("lease", [heard(LeaseState.CURRENT), heard(LeaseState.EXPIRED)])
@pytest.mark.parametrize("revision", [None, "a" * 40])
def test_an_applied_revision_that_cannot_be_known_is_not_stated(lease: Lease, revision: str | None) -> None:
    problem = DeliveryProblem(reason="CannotBeKnown", message="The agent lacks a right there: list on x.")
    facts = wanted(observed_revision=revision, observed_descends=True, delivery_problem=problem, lease=lease)
    unknown = state(ConditionType.SYNCED, facts, desired_revision="a" * 40)
    assert (unknown.status, unknown.reason) == ("Unknown", "CannotBeKnown")
    assert "aaaaaaaaaaaa" not in unknown.message and "list on x" in unknown.message


def test_an_edge_whose_driver_is_gone_is_not_up_to_date() -> None:
    problem = DeliveryProblem(reason="DriverMissing", message="GitRepository self-link is missing on the edge.")
    facts = wanted(observed_revision="a" * 40, observed_descends=True, delivery_problem=problem)
    missing = state(ConditionType.SYNCED, facts, desired_revision="a" * 40)
    assert (missing.status, missing.reason) == ("False", "DriverMissing")
    assert missing.message == "The edge has applied aaaaaaaaaaaa. GitRepository self-link is missing on the edge."


def test_values_that_no_key_opens_are_named_whoever_has_found_them() -> None:
    sound = {"certificate": certificate(age=timedelta(days=1))}
    found = wanted(**sound, unopened=("default/db/a", "default/db/b"), unopened_count=30)
    lost = state(ConditionType.SEALING_KEY_CURRENT, found)
    assert (lost.status, lost.reason) == ("False", "Unreadable")
    assert "default/db/a, default/db/b and 28 more" in lost.message
    assert state(ConditionType.SEALING_KEY_CURRENT, wanted(**sound)).status is ConditionStatus.TRUE


def test_an_edge_that_has_applied_nothing_yet_says_what_keeps_it() -> None:
    problem = DeliveryProblem(reason="FetchFailed", message="Flux cannot fetch self-link: no route.")
    late = state(ConditionType.SYNCED, wanted(delivery_problem=problem), desired_revision="a" * 40)
    assert (late.status, late.reason) == ("False", "FetchFailed")
    assert (
        late.message == "The edge has applied nothing, not yet aaaaaaaaaaaa. Flux cannot fetch self-link: no route."
    )


def test_a_failure_counts_although_the_newest_revision_was_applied_once() -> None:
    """Flux applies the same revision again and again, and may fail later: somebody has taken a right away."""
    problem = DeliveryProblem(reason="ApplyFailed", message="Flux cannot apply by-hand: forbidden.")
    facts = wanted(observed_revision="a" * 40, observed_descends=True, delivery_problem=problem)
    failed = state(ConditionType.SYNCED, facts, desired_revision="a" * 40)
    assert (failed.status, failed.reason) == ("False", "ApplyFailed")
    assert failed.message == "The edge has applied aaaaaaaaaaaa. Flux cannot apply by-hand: forbidden."


def test_a_push_that_was_not_applied_is_what_is_missing() -> None:
    facts = wanted(observed_revision="a" * 40, observed_descends=False, head="f" * 40)
    behind = state(ConditionType.SYNCED, facts, desired_revision="a" * 40)
    assert (behind.status, behind.reason) == ("False", "Behind")
    assert "not yet ffffffffffff" in behind.message


def test_since_is_kept_while_the_status_is_the_same_and_moves_when_it_changes() -> None:
    first = state(ConditionType.AVAILABLE, wanted(lease=heard(LeaseState.CURRENT)))
    later = NOW + timedelta(hours=1)
    same = state(ConditionType.AVAILABLE, wanted(lease=heard(LeaseState.CURRENT)), now=later, before=[first])
    gone = state(ConditionType.AVAILABLE, wanted(lease=heard(LeaseState.EXPIRED)), now=later, before=[first])
    assert (same.since, gone.since) == (NOW, later)


def test_a_blocked_cluster_says_what_to_do() -> None:
    blocked = state(ConditionType.BLOCKED, wanted(), obstacle=Obstacle(reason="AddressTaken", sentence="Rename it."))
    assert (blocked.status, blocked.reason, blocked.message) == ("True", "AddressTaken", "Rename it.")


def test_the_passing_of_time_alone_is_reviewed() -> None:
    young = wanted(certificate=certificate(age=timedelta(days=1)))
    assert next_review(young, NOW) == NOW - timedelta(days=1) + KEY_AGE_LIMIT
    assert next_review(wanted(), NOW) is None


@pytest.mark.parametrize(
    ("health", "lease", "status", "reason"),
    [
        (EdgeHealth(reason="Healthy"), LeaseState.CURRENT, "True", "Healthy"),
        (EdgeHealth(reason="ReleaseFailed", message="It failed."), LeaseState.CURRENT, "False", "ReleaseFailed"),
        (EdgeHealth(reason="ReleaseFailed", message="It failed."), LeaseState.EXPIRED, "False", "ReleaseFailed"),
        (EdgeHealth(reason="Healthy"), LeaseState.EXPIRED, "Unknown", "EdgeSilent"),
    ],
)
def test_healthy_says_what_the_edge_says(health: EdgeHealth, lease: LeaseState, status: str, reason: str) -> None:
    condition = state(ConditionType.HEALTHY, wanted(edge_health=health, lease=Lease(state=lease, last_heard=NOW)))
    assert (condition.status, condition.reason) == (status, reason)
    assert ("fell silent" in condition.message) is (lease is LeaseState.EXPIRED)


def test_healthy_is_stated_from_the_first_report_on() -> None:
    with pytest.raises(StopIteration):
        state(ConditionType.HEALTHY, wanted())
    stated = state(ConditionType.HEALTHY, wanted(edge_health=EdgeHealth(reason="Healthy")))
    lost = state(ConditionType.HEALTHY, wanted(), before=[stated])
    assert (lost.status, lost.reason) == (ConditionStatus.UNKNOWN, "NotReported")
