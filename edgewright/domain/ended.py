"""What is said of a deletion: what it waits for, and once it has finished, when that was."""

from datetime import datetime, timedelta
from uuid import UUID

from edgewright.domain.cluster import Acceptance
from edgewright.errors import Gone

LONGEST_DEADLINE = timedelta(days=30)
"""For which a deletion may be asked to wait for the edge."""


def patience_of(*, force: bool, can_answer: bool, acceptance: Acceptance, deadline: datetime | None) -> str:
    """What a deletion waits for: a clause without a full stop.

    Args:
        can_answer: the agent has an active credential; without one nothing is ever heard of the edge.
    """
    if force:
        return "it does not wait for the edge"
    if not can_answer and acceptance is Acceptance.NONE:
        return "no edge is attached: this happens at once"
    if not can_answer:
        return "the edge has no credential to answer with: nothing waits for it"
    until = "" if deadline is None else f" until {deadline:%Y-%m-%dT%H:%M:%SZ} at most"
    return f"it waits for the edge{until}"


def cluster_deleted(cluster: UUID, name: str, ended_at: datetime) -> Gone:
    """The refusal of everything but reading the timeline."""
    return Gone(
        f"The cluster {name} was deleted at {ended_at:%Y-%m-%dT%H:%M:%SZ}.",
        code="cluster_deleted",
        hint=f"`edgewright cluster timeline {cluster}` shows what happened. The UUID is never used again.",
        ended_at=ended_at.isoformat().replace("+00:00", "Z"),
        timeline=f"/v1/cluster/{cluster}/timeline",
    )
