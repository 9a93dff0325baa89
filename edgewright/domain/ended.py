"""Sentences about a deletion: what it waits for, what it leaves on the edge, and that it has finished."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from edgewright.domain.cluster import Acceptance, Workloads
from edgewright.errors import Conflict, Gone, Invalid

SEALING = "The kind SealedSecret and the sealing keys"
BY_SCRIPT = "To remove them, run the uninstall script with --purge."
IMPOSSIBLE = "purge_impossible"
LONGEST_DEADLINE = timedelta(days=30)
"""The longest time that a deletion can wait for the edge."""


def patience_of(*, force: bool, can_answer: bool, acceptance: Acceptance, deadline: datetime | None) -> str:
    """Says what a deletion waits for: a clause without a full stop.

    Args:
        can_answer: the agent has an active credential; without one, the edge can report nothing.
    """
    if force:
        return "it does not wait for the edge"
    if not can_answer and acceptance is Acceptance.NONE:
        return "no edge is attached, so it does not wait"
    if not can_answer:
        return "the edge has no credential to answer with, so the deletion does not wait for it"
    until = "" if deadline is None else f" until {deadline:%Y-%m-%dT%H:%M:%SZ} at the latest"
    return f"it waits for the edge{until}"


@dataclass(frozen=True)
class Purge:
    """Whether a deletion removes the kind SealedSecret and the sealing keys from the edge, and with which result.

    Args:
        asked: it was requested.
        done: the result in the edge's goodbye; None: not reported.
        problem: why it was not done, in the edge's words; empty: it gave no reason.
    """

    asked: bool = False
    done: bool | None = None
    problem: str = ""


def left_on_edge(purge: Purge, acceptance: Acceptance, *, over: bool) -> str:
    """Says what happens to the kind SealedSecret and the sealing keys, in a sentence or two; empty if no edge was
    accepted.

    Args:
        over: no more reports from the edge are expected.
    """
    if acceptance is not Acceptance.ACCEPTED:
        return ""
    if purge.done:
        return f"{SEALING} were removed from the edge."
    if not purge.asked:
        return f"{SEALING} stay on the edge."
    if purge.problem:
        return f"{SEALING} stay on the edge. {purge.problem} {BY_SCRIPT}"
    if purge.done is None and not over:
        return f"{SEALING} are removed as well."
    return f"{SEALING} stay on the edge: it has not confirmed their removal. {BY_SCRIPT}"


def refuse_purge(*, force: bool, workloads: Workloads) -> None:
    """Checks that a purge goes with the other options.

    Raises:
        Invalid: code ``purge_impossible``: nothing waits for the edge, or the workloads still need their secrets.
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
            "Workloads that you keep need the secrets that a purge would remove.",
            code=IMPOSSIBLE,
            hint="Remove the workloads as well, or leave out purge.",
            where="purge",
        )


def no_edge_to_purge(name: str) -> Conflict:
    """Returns the refusal if no edge can carry out a purge."""
    return Conflict(
        f"No edge of {name} can answer, so nothing can be purged.",
        code=IMPOSSIBLE,
        hint=f"Leave out purge. {BY_SCRIPT}",
    )


def purge_too_late(name: str) -> Conflict:
    """Returns the refusal if the deletion has already begun without a purge."""
    return Conflict(
        f"The deletion of {name} has begun without a purge.",
        code="purge_too_late",
        hint=f"Wait until it has finished. {BY_SCRIPT}",
    )


def cluster_deleted(cluster: UUID, name: str, ended_at: datetime, *, edge: str) -> Gone:
    """Returns the answer to every request about a deleted cluster, except for its timeline.

    Args:
        edge: a sentence about what stays on the edge, or nothing.
    """
    return Gone(
        f"The cluster {name} was deleted at {ended_at:%Y-%m-%dT%H:%M:%SZ}. {edge}".strip(),
        code="cluster_deleted",
        hint=f"`edgewright cluster timeline {cluster}` shows what happened. The UUID is never used again.",
        ended_at=ended_at.isoformat().replace("+00:00", "Z"),
        timeline=f"/v1/cluster/{cluster}/timeline",
    )
