"""Verdicts on a cluster for lists, in one word or sentence; ``docs/glossary.md`` explains them.

They are pure functions of the projection, so that lists, pages and waiting commands say the same.
"""

from collections.abc import Mapping
from enum import IntEnum

from edgewright.domain.cluster import Condition, ConditionStatus, ConditionType, Phase
from edgewright.domain.health import CANNOT_BE_KNOWN, DRIVER_MISSING
from edgewright.domain.projection import Projection

NOT_BEGUN = "The commissioning has not begun yet."
UNDER_WAY = "The commissioning is under way."
BEING_DELETED = "The cluster is being deleted."
REMOVED = "The cluster was removed centrally; it is commissioned anew when its configuration is written again."

_WRONG: Mapping[ConditionType, frozenset[str]] = {
    ConditionType.JOINED: frozenset({"IdentityForked", "RotationUnproven"}),
    ConditionType.SEALING_KEY_CURRENT: frozenset(
        {"CertificateExpired", "CertificateRefused", "KeyOld", "Unreadable"}
    ),
    ConditionType.SYNCED: frozenset(
        {"FetchFailed", "ApplyFailed", "ReleaseFailed", "FluxSuspended", DRIVER_MISSING, CANNOT_BE_KNOWN}
    ),
    ConditionType.CLOCK_SYNCED: frozenset({"ClockSkewed"}),
    ConditionType.DRIFTED: frozenset({"PutBack"}),
}
"""Reasons that mean that something is wrong; *Healthy* says so by its status. A commit on its way is not wrong."""
_WAY = (ConditionType.JOINED, ConditionType.AVAILABLE, ConditionType.SYNCED, ConditionType.HEALTHY)
"""The conditions that a commissioned cluster reaches one after another."""
_OF_PHASE = {
    Phase.COMMISSIONING: UNDER_WAY,
    Phase.DETACHING: BEING_DELETED,
    Phase.REMOVED: REMOVED,
    Phase.DELETED: "",
}
_AT_REST = frozenset({Phase.REMOVED, Phase.DELETED})


class Trouble(IntEnum):
    """The rank of a cluster in a list that shows trouble first."""

    BLOCKED = 0
    UNHEALTHY = 1
    SILENT = 2
    PAUSED = 3
    NONE = 4


def is_blocked(projection: Projection) -> bool:
    """Whether a person has to act."""
    return projection.status_of(ConditionType.BLOCKED) is ConditionStatus.TRUE and projection.phase != Phase.DELETED


def health_of(projection: Projection) -> ConditionStatus:
    """*healthy*: False if something is wrong; True if nothing is wrong and heartbeats arrive; otherwise Unknown."""
    if projection.phase in _AT_REST:
        return ConditionStatus.FALSE if is_blocked(projection) else ConditionStatus.UNKNOWN
    if is_blocked(projection) or any(_is_wrong(condition) for condition in projection.conditions):
        return ConditionStatus.FALSE
    heard = projection.status_of(ConditionType.AVAILABLE) is ConditionStatus.TRUE
    reported = projection.status_of(ConditionType.SYNCED) is not ConditionStatus.UNKNOWN
    return ConditionStatus.TRUE if projection.ready and heard and reported else ConditionStatus.UNKNOWN


def trouble_of(projection: Projection) -> Trouble:
    """Returns the worst trouble of a cluster."""
    if is_blocked(projection):
        return Trouble.BLOCKED
    if projection.phase in _AT_REST:
        return Trouble.NONE
    if health_of(projection) is ConditionStatus.FALSE:
        return Trouble.UNHEALTHY
    available = projection.condition(ConditionType.AVAILABLE)
    if available is not None and available.reason == "LeaseExpired":
        return Trouble.SILENT
    paused = projection.status_of(ConditionType.PAUSED) is ConditionStatus.TRUE
    return Trouble.PAUSED if paused else Trouble.NONE


def awaited(projection: Projection) -> str:
    """Says what a cluster waits for (the centre, a person or its edge), in one sentence; empty: nothing."""
    said = projection.waiting_for or _OF_PHASE.get(projection.phase)
    if said is not None:
        return said
    if projection.phase is Phase.PENDING_ACCEPTANCE:
        return _message_of(projection.condition(ConditionType.ACCEPTED))
    stated = (projection.condition(kind) for kind in (ConditionType.BLOCKED, *_WAY))
    return next((_message_of(condition) for condition in stated if _hinders(condition)), "")


def _is_wrong(condition: Condition) -> bool:
    if condition.type is ConditionType.HEALTHY:
        return condition.status is ConditionStatus.FALSE
    return condition.reason in _WRONG.get(condition.type, frozenset())


def _hinders(condition: Condition | None) -> bool:
    if condition is None:
        return False
    return (condition.status is ConditionStatus.TRUE) is (condition.type is ConditionType.BLOCKED)


def _message_of(condition: Condition | None) -> str:
    return condition.message if condition is not None else ""
