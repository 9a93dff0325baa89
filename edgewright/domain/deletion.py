"""Decides what a request to delete a cluster does: start a deletion, bring it forward, or add a purge to it.

Requests from every door are decided here, within the transaction that locks the cluster's row.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from edgewright.domain.cluster import Acceptance, Desired, Workloads
from edgewright.domain.ended import Purge, left_on_edge, no_edge_to_purge, patience_of, purge_too_late, refuse_purge
from edgewright.errors import Conflict

DEADLINE = timedelta(hours=24)
"""How long a deletion waits for the edge by default."""


class DeletionVerb(StrEnum):
    """What happened to a deletion, in the words of its event."""

    REQUESTED = "requested"
    HASTENED = "brought forward"
    CHANGED = "changed"


@dataclass(frozen=True)
class DeletionRequest:
    """A request to delete a cluster.

    Args:
        force: do not wait for the edge.
        deadline: how long to wait for the edge; None: ``DEADLINE`` for a new deletion, unchanged for one under way.
        purge: also remove the kind SealedSecret and the sealing keys from the edge.
    """

    force: bool = False
    deadline: timedelta | None = None
    workloads: Workloads = Workloads.REMOVE
    purge: bool = False

    def check(self) -> "DeletionRequest":
        """Returns the request if its options go together.

        Raises:
            Invalid: code ``purge_impossible``.
        """
        if self.purge:
            refuse_purge(force=self.force, workloads=self.workloads)
        return self


@dataclass(frozen=True)
class DeletionUnderWay:
    """The deletion in a cluster's row.

    Args:
        deadline: when it stops waiting; None: unknown.
        begun: the commit that empties the edge has begun, so the deletion cannot be cancelled.
    """

    force: bool
    deadline: datetime | None
    workloads: Workloads
    purge: bool
    begun: bool


@dataclass(frozen=True)
class DeletionDecision:
    """The new deletion for the row."""

    verb: DeletionVerb
    force: bool
    deadline: datetime
    workloads: Workloads
    purge: bool


def decide_deletion(
    name: str, under_way: DeletionUnderWay | None, request: DeletionRequest, *, now: datetime
) -> DeletionDecision | None:
    """Decides what a request changes; None: nothing. It can only bring a deletion's deadline forward.

    Args:
        name: name of the cluster.
        under_way: None: the cluster is not being deleted.

    Raises:
        Conflict: ``purge_too_late``.
        Invalid: ``purge_impossible``: the deletion under way does not wait for the edge, or keeps the workloads.
    """
    until = now + (DEADLINE if request.deadline is None else request.deadline)
    if under_way is None:
        return DeletionDecision(DeletionVerb.REQUESTED, request.force, until, request.workloads, request.purge)
    if under_way.deadline is not None:
        until = under_way.deadline if request.deadline is None else min(under_way.deadline, until)
    force = under_way.force or request.force
    adds_purge = request.purge and not under_way.purge
    if not adds_purge and (force, until) == (under_way.force, under_way.deadline):
        return None
    if adds_purge:
        _refuse_late_purge(name, under_way)
    verb = DeletionVerb.CHANGED if adds_purge else DeletionVerb.HASTENED
    return DeletionDecision(verb, force, until, under_way.workloads, under_way.purge or request.purge)


def refuse_unanswered_purge(name: str, request: DeletionRequest, *, can_answer: bool | None) -> None:
    """Refuses a purge that no edge can carry out. Call this after the write, which reactivates suspended credentials.

    Raises:
        Conflict: code ``purge_impossible``: no edge can answer.
    """
    if request.purge and not can_answer:
        raise no_edge_to_purge(name)


def refuse_undeletion(name: str, under_way: DeletionUnderWay | None) -> None:
    """Raises ``Conflict``, code ``not_deleting`` or ``too_late``, if there is no deletion to cancel."""
    if under_way is None:
        raise Conflict(
            f"The cluster {name} is not being deleted.",
            code="not_deleting",
            hint="There is nothing to cancel; `edgewright cluster show NAME` shows its phase.",
        )
    if under_way.begun:
        raise Conflict(
            f"The deletion of {name} has begun and cannot be cancelled.",
            code="too_late",
            hint="Wait until it has finished, then create the cluster again.",
        )


def desired_again(before: Desired | None) -> Desired:
    """Returns what is desired after a cancelled deletion. ``before``: what was desired before it; None: unknown."""
    return before or Desired.PRESENT


def sentence_of_deletion(
    name: str, decision: DeletionDecision, *, can_answer: bool, acceptance: Acceptance, purge: Purge
) -> str:
    """Says for the timeline what happened, what the deletion waits for, and what stays on the edge."""
    patience = patience_of(
        force=decision.force, can_answer=can_answer, acceptance=acceptance, deadline=decision.deadline
    )
    edge = left_on_edge(purge, acceptance, over=decision.force)
    return f"The deletion of {name} was {decision.verb}; {patience}. {edge}".strip()


def _refuse_late_purge(name: str, under_way: DeletionUnderWay) -> None:
    """Refuses a purge after the commit that empties the edge, because that commit grants the rights to purge."""
    if under_way.begun:
        raise purge_too_late(name)
    refuse_purge(force=under_way.force, workloads=under_way.workloads)
