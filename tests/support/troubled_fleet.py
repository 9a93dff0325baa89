"""Four clusters, one in each kind of trouble that a list filters and sorts by, and one in none."""

from gateway_centre import GatewayCentre

from edgewright.domain.cluster import Condition, ConditionStatus, ConditionType, Phase

HEARD = (ConditionType.AVAILABLE, ConditionStatus.TRUE, "LeaseCurrent")
APPLIED = (ConditionType.SYNCED, ConditionStatus.TRUE, "UpToDate")
FLEET = {
    "a-well": (HEARD, APPLIED),
    "b-paused": (HEARD, APPLIED, (ConditionType.PAUSED, ConditionStatus.TRUE, "PausedByOperator")),
    "c-behind": (HEARD, (ConditionType.SYNCED, ConditionStatus.FALSE, "ApplyFailed")),
    "d-blocked": (HEARD, APPLIED, (ConditionType.BLOCKED, ConditionStatus.TRUE, "TemplateInvalid")),
}
ORDERS = {
    "blocked": "d-blocked a-well b-paused c-behind",
    "healthy": "c-behind d-blocked a-well b-paused",
    "synced": "c-behind a-well b-paused d-blocked",
    "paused": "b-paused a-well c-behind d-blocked",
}
"""By what a list is sorted, and what it shows then."""
CHOICES = {
    ("blocked", True): "d-blocked",
    ("blocked", False): "a-well b-paused c-behind",
    ("healthy", True): "a-well b-paused",
    ("healthy", False): "c-behind d-blocked",
    ("synced", True): "a-well b-paused d-blocked",
    ("synced", False): "c-behind",
    ("paused", True): "b-paused",
    ("paused", False): "a-well c-behind d-blocked",
}
"""By what a list is filtered, and what it shows then."""


async def make_fleet(centre: GatewayCentre) -> None:
    """Makes the clusters, and publishes what their workflows would."""
    for name, states in FLEET.items():
        cluster = await centre.create(name)
        if name == "b-paused":
            await centre.gateway.wishes.set_paused(cluster, paused=True, reason="freeze", actor="test")
        since = (await centre.row(cluster)).created_at
        conditions = tuple(
            Condition(type=kind, status=status, reason=reason, message="", since=since)
            for kind, status, reason in states
        )
        await centre.project(cluster, phase=Phase.ACTIVE, ready=True, conditions=conditions)
