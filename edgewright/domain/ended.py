"""What is said of a deletion: what it waits for, what it leaves on the edge, and when it has finished."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from edgewright.domain.cluster import Acceptance, Workloads
from edgewright.errors import Conflict, Gone, Invalid

SEALING = "The kind SealedSecret and the sealing keys"
BY_SCRIPT = "The uninstall script takes them, with --purge."
IMPOSSIBLE = "purge_impossible"
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


@dataclass(frozen=True)
class Purge:
    """Whether a deletion takes the kind SealedSecret and the sealing keys from the edge, and what came of it.

    Args:
        asked: it was to.
        done: as the edge has said with its goodbye; None: it has not said.
        problem: why not, as the edge says; empty: it gave no reason.
    """

    asked: bool = False
    done: bool | None = None
    problem: str = ""


def left_on_edge(purge: Purge, acceptance: Acceptance, *, over: bool) -> str:
    """What of sealing a deletion leaves on its edge: a sentence or two; empty where no edge was ever accepted.

    Args:
        over: nothing more is to be heard of the edge.
    """
    if acceptance is not Acceptance.ACCEPTED:
        return ""
    if purge.done:
        return f"{SEALING} were taken from the edge."
    if not purge.asked:
        return f"{SEALING} stay on the edge."
    if purge.problem:
        return f"{SEALING} stay on the edge. {purge.problem} {BY_SCRIPT}"
    if purge.done is None and not over:
        return f"{SEALING} go as well."
    return f"{SEALING} stay on the edge: it has not said that it took them. {BY_SCRIPT}"


def refuse_purge(*, force: bool, workloads: Workloads) -> None:
    """Lets pass what can be purged.

    Raises:
        Invalid: code ``purge_impossible``: the edge is not waited for, or the workloads still need their secrets.
    """
    if force:
        raise Invalid(
            "A forced deletion does not wait for the edge, so nothing can be purged there.",
            code=IMPOSSIBLE,
            hint=f"Leave out force or purge. {BY_SCRIPT}",
            where="purge",
        )
    if workloads is Workloads.KEEP:
        raise Invalid(
            "Workloads that are kept need the secrets that a purge takes away.",
            code=IMPOSSIBLE,
            hint="Have the workloads removed, or leave out purge.",
            where="purge",
        )


def no_edge_to_purge(name: str) -> Conflict:
    """Nobody is there who could do it."""
    return Conflict(
        f"No edge of {name} can answer, so nothing can be purged.",
        code=IMPOSSIBLE,
        hint=f"Leave out purge. {BY_SCRIPT}",
    )


def purge_too_late(name: str) -> Conflict:
    """Its edge is being emptied without."""
    return Conflict(
        f"The deletion of {name} has begun without a purge.",
        code="purge_too_late",
        hint=f"Wait for its end. {BY_SCRIPT}",
    )


def cluster_deleted(cluster: UUID, name: str, ended_at: datetime, *, edge: str) -> Gone:
    """The refusal of everything but reading the timeline.

    Args:
        edge: what is left there, a sentence or nothing.
    """
    return Gone(
        f"The cluster {name} was deleted at {ended_at:%Y-%m-%dT%H:%M:%SZ}. {edge}".strip(),
        code="cluster_deleted",
        hint=f"`edgewright cluster timeline {cluster}` shows what happened. The UUID is never used again.",
        ended_at=ended_at.isoformat().replace("+00:00", "Z"),
        timeline=f"/v1/cluster/{cluster}/timeline",
    )
