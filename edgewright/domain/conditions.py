"""The conditions of a cluster, computed from what is wanted and what is done."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from edgewright.domain.cluster import (
    Acceptance,
    Condition,
    ConditionStatus,
    ConditionType,
    Desired,
    Frozen,
    LeaseState,
    Resealing,
    Wanted,
)
from edgewright.domain.former_words import (
    FELL_SILENT,
    NO_HEARTBEAT,
    NO_HEARTBEAT_SINCE,
    NO_PROBLEM_BEFORE,
    NOT_BLOCKED,
    NOTHING_TO_JUDGE,
)
from edgewright.domain.health import CANNOT_BE_KNOWN

KEY_AGE_LIMIT = timedelta(days=90)
_SWEEPS_MISSED = 10
_SHORTEST_SILENCE = timedelta(minutes=1)
CLOCK_TOLERANCE_SECONDS = 60.0
MOST_NAMES = 10
"""In one sentence."""
BEHIND = "Behind"
"""Reason of *Synced*: the edge has not applied the present or intended content of its repository, but reports no
problem."""
UNRENDERED = "The repository does not have the cluster's present configuration yet."
_SILENT_SINCE = f" {FELL_SILENT}"

TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN


class Obstacle(Frozen):
    """An obstacle that a person has to remove before a step can continue. ``sentence`` says how."""

    reason: str
    sentence: str


def conditions_of(
    wanted: Wanted,
    *,
    commissioned: bool,
    waiting_for: str,
    obstacle: Obstacle | None,
    desired_revision: str | None,
    now: datetime,
    before: Sequence[Condition],
) -> tuple[Condition, ...]:
    """Returns all conditions, in the order of ``ConditionType``; ``since`` stays while the status is the same.

    *Drifted* only appears after the first drift, as most clusters never have one. *Healthy* appears once the edge has
    reported something to judge by.
    """
    known = {condition.type: condition for condition in before}
    states = {
        ConditionType.COMMISSIONED: _commissioned(wanted, commissioned, waiting_for),
        ConditionType.ACCEPTED: _accepted(wanted),
        ConditionType.JOINED: _joined(wanted),
        ConditionType.AVAILABLE: _available(wanted),
        ConditionType.SEALING_KEY_CURRENT: _sealing_key(wanted, now),
        ConditionType.SYNCED: _synced(wanted, desired_revision),
        ConditionType.CLOCK_SYNCED: _clock(wanted),
        ConditionType.BLOCKED: (TRUE, obstacle.reason, obstacle.sentence) if obstacle else (FALSE, NOT_BLOCKED, ""),
        ConditionType.PAUSED: (TRUE, "PausedByOperator", wanted.paused_reason)
        if wanted.paused
        else (FALSE, "NotPaused", ""),
    }
    if wanted.drift or ConditionType.DRIFTED in known:
        states[ConditionType.DRIFTED] = (TRUE, "PutBack", wanted.drift) if wanted.drift else (FALSE, "Mended", "")
    if wanted.edge_health is not None or ConditionType.HEALTHY in known:
        states[ConditionType.HEALTHY] = _healthy(wanted)
    return tuple(_carried(kind, *state, now=now, before=known.get(kind)) for kind, state in states.items())


State = tuple[ConditionStatus, str, str]


def _carried(
    kind: ConditionType,
    status: ConditionStatus,
    reason: str,
    message: str,
    *,
    now: datetime,
    before: Condition | None,
) -> Condition:
    since = before.since if before is not None and before.status is status else now
    return Condition(type=kind, status=status, reason=reason, message=message, since=since)


def _commissioned(wanted: Wanted, commissioned: bool, waiting_for: str) -> State:
    if wanted.desired is Desired.DELETED:
        return FALSE, "Deleting", ""
    if wanted.desired is Desired.REMOVED:
        return FALSE, "Removed", "The configuration entry is deleted; write it again to recreate the cluster."
    if commissioned:
        return TRUE, "Commissioned", ""
    return FALSE, "Commissioning", waiting_for


def _accepted(wanted: Wanted) -> State:
    match wanted.acceptance:
        case Acceptance.ACCEPTED:
            return TRUE, "Accepted", ""
        case Acceptance.REJECTED:
            return FALSE, "Rejected", "Issue a new registration token to let it try again."
        case Acceptance.PENDING:
            code = f" It shows the code {wanted.short_code}." if wanted.short_code else ""
            return FALSE, "Pending", f"A cluster has registered and waits for `accept` or `reject`.{code}"
        case _:
            return UNKNOWN, "NotRegistered", "No cluster has registered yet."


def _joined(wanted: Wanted) -> State:
    if wanted.edge_reported_at is not None and wanted.identity_problem:
        return TRUE, "IdentityForked", wanted.identity_problem
    if wanted.edge_reported_at is not None and wanted.rotation_problem:
        return TRUE, "RotationUnproven", wanted.rotation_problem
    if wanted.edge_reported_at is not None:
        return TRUE, "Reported", ""
    if wanted.bootstrapped:
        return FALSE, "Registered", "The cluster has registered and has not reported yet."
    return FALSE, "AwaitingBootstrap", "Run the bootstrap line on the edge cluster."


def _available(wanted: Wanted) -> State:
    if wanted.detached_at is not None:
        return FALSE, "Detached", "The edge has said goodbye."
    lease = wanted.lease
    if lease.state is LeaseState.CURRENT:
        return TRUE, "LeaseCurrent", _expected(wanted)
    if lease.state is LeaseState.EXPIRED and lease.last_heard is not None:
        heard = lease.last_heard.strftime("%Y-%m-%dT%H:%M:%SZ")
        return UNKNOWN, "LeaseExpired", f"{NO_HEARTBEAT_SINCE}{heard}."
    return UNKNOWN, "NoHeartbeat", NO_HEARTBEAT


def _sealing_key(wanted: Wanted, now: datetime) -> State:
    certificate = wanted.certificate
    if certificate is None:
        problem = wanted.certificate_problem
        if problem:
            return FALSE, "CertificateRefused", problem
        message = "The edge has not reported a sealing certificate; secrets cannot be sealed."
        return UNKNOWN, "NoCertificate", f"{message}{_proposed(wanted)}"
    if now >= certificate.not_after:
        return FALSE, "CertificateExpired", "The sealing certificate has expired; secrets are refused."
    if wanted.certificate_problem:
        return FALSE, "CertificateRefused", f"{wanted.certificate_problem} The one before is kept."
    if now - certificate.not_before > KEY_AGE_LIMIT:
        return FALSE, "KeyOld", f"The sealing key is over 90 days old.{_proposed(wanted)}"
    status, reason, message = _opening(wanted)
    return status, reason, f"{message}{_proposed(wanted)}".strip()


def _proposed(wanted: Wanted) -> str:
    if wanted.certificate_proposed is None:
        return ""
    fingerprint = wanted.certificate_proposed.fingerprint[:16]
    return f" A signal proposed the certificate {fingerprint}…; it is not used unless an admin confirms it."


def _opening(wanted: Wanted) -> State:
    """Judges the secrets under a valid certificate: whether all open, are sealed with it, and can be re-sealed."""
    resealing = wanted.resealing
    lost, count = ((), 0) if resealing is None else (resealing.unreadable, resealing.unreadable_count)
    lost = (*lost, *(place for place in wanted.unopened if place not in lost))
    if lost:
        return FALSE, "Unreadable", _unreadable(lost, max(count, wanted.unopened_count))
    return _resealing(resealing)


def _resealing(resealing: Resealing | None) -> State:
    if resealing is not None and resealing.ended_at is None:
        done = resealing.secrets - resealing.left
        return TRUE, "Resealing", f"{done} of {resealing.secrets} Secrets are re-sealed."
    return TRUE, "Current", ""


def _unreadable(first: Sequence[str], count: int) -> str:
    values = first[:MOST_NAMES]
    left = max(count, len(first)) - len(values)
    others = f" and {left} more" if left else ""
    return f"No key of the edge opens {', '.join(values)}{others} any more. Enter them again."


def _synced(wanted: Wanted, desired_revision: str | None) -> State:
    problem = wanted.delivery_problem
    if desired_revision is None or (wanted.observed_revision is None and problem is None):
        return UNKNOWN, "NotReported", "The edge has not reported an applied revision."
    if problem is not None and problem.reason == CANNOT_BE_KNOWN:
        return UNKNOWN, problem.reason, f"What the edge has applied cannot be known. {problem.message}"
    return (
        (TRUE, "UpToDate", "") if wanted.observed_descends and problem is None else _behind(wanted, desired_revision)
    )


def _behind(wanted: Wanted, desired_revision: str) -> State:
    problem = wanted.delivery_problem
    missing = None if wanted.observed_descends else wanted.head or desired_revision
    behind = applied_so_far(wanted.observed_revision, missing)
    if wanted.lease.state is LeaseState.EXPIRED:
        return FALSE, "EdgeSilent", f"{behind}{_SILENT_SINCE}"
    if problem is not None:
        return FALSE, problem.reason, f"{behind} {problem.message}"
    if wanted.window_opens_at is not None:
        return FALSE, "AwaitingWindow", f"{behind} {_expected(wanted)}"
    return FALSE, BEHIND, behind


def applied_so_far(observed: str | None, missing: str | None) -> str:
    """A sentence.

    Args:
        observed: the revision that the edge has applied; None: none yet.
        missing: the one that it should have; None: it has it.
    """
    applied = "nothing" if observed is None else observed[:12]
    return f"The edge has applied {applied}{'' if missing is None else f', not yet {missing[:12]}'}."


def _healthy(wanted: Wanted) -> State:
    health = wanted.edge_health
    if health is None:
        return UNKNOWN, "NotReported", NOTHING_TO_JUDGE
    silent = wanted.lease.state is LeaseState.EXPIRED
    if health.message:
        return FALSE, health.reason, f"{health.message}{_SILENT_SINCE if silent else ''}"
    if silent:
        return UNKNOWN, "EdgeSilent", NO_PROBLEM_BEFORE
    return TRUE, health.reason, ""


def _expected(wanted: Wanted) -> str:
    """Says when an edge that must not call now will call again; empty: it may call."""
    opens = wanted.window_opens_at
    return "" if opens is None else f"Its next check-in window opens {opens:%Y-%m-%dT%H:%M:%SZ}."


def clock_status(offset: float | None) -> ConditionStatus:
    """Whether an edge's clock is right. ``offset``: seconds ahead of the centre's clock; None: not reported."""
    if offset is None:
        return UNKNOWN
    return TRUE if abs(offset) <= CLOCK_TOLERANCE_SECONDS else FALSE


def _clock(wanted: Wanted) -> State:
    offset = wanted.lease.clock_offset_seconds
    if offset is None:
        return UNKNOWN, "NotReported", ""
    if clock_status(offset) is TRUE:
        return TRUE, "InStep", ""
    ahead = "ahead of" if offset > 0 else "behind"
    return FALSE, "ClockSkewed", f"The edge's clock is {abs(offset):.0f} s {ahead} the centre's."


def next_review(wanted: Wanted, now: datetime) -> datetime | None:
    """Returns when a condition changes just because time passes; None: never."""
    moments = [wanted.review_at]
    if wanted.certificate is not None:
        moments += [wanted.certificate.not_after, wanted.certificate.not_before + KEY_AGE_LIMIT]
    return min((moment for moment in moments if moment is not None and moment > now), default=None)


def late_sweep(every: timedelta) -> timedelta:
    """Returns how long the sweep may go without a round before it counts as stopped.

    Args:
        every: its interval.
    """
    return max(_SHORTEST_SILENCE, every * _SWEEPS_MISSED)
