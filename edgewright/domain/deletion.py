"""What asking for the deletion of a cluster does: one begins, or the one under way is hastened, or is to purge, too.

Whichever door a request came through, what holds the cluster's row asks here, within the transaction that locks it.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from edgewright.domain.cluster import Acceptance, Desired, Workloads
from edgewright.domain.ended import Purge, left_on_edge, no_edge_to_purge, patience_of, purge_too_late, refuse_purge
from edgewright.errors import Conflict

DEADLINE = timedelta(hours=24)
"""How long a deletion waits for the edge unless it is told otherwise."""


class DeletionVerb(StrEnum):
    """What became of a deletion, as its event says."""

    REQUESTED = "requested"
    HASTENED = "hastened"
    CHANGED = "changed"


@dataclass(frozen=True)
class DeletionRequest:
    """What somebody asks for.

    Args:
        force: nothing waits for the edge.
        deadline: how long to wait for the edge; None: ``DEADLINE`` for a new deletion, unchanged for one under way.
        purge: the kind SealedSecret and the sealing keys are to go from the edge.
    """

    force: bool = False
    deadline: timedelta | None = None
    workloads: Workloads = Workloads.REMOVE
    purge: bool = False

    def check(self) -> "DeletionRequest":
        """Returns a request that makes sense for some cluster.

        Raises:
            Invalid: code ``purge_impossible``.
        """
        if self.purge:
            refuse_purge(force=self.force, workloads=self.workloads)
        return self


@dataclass(frozen=True)
class DeletionUnderWay:
    """What a cluster's row says of its deletion.

    Args:
        deadline: None: nobody knows until when it waits.
        begun: the commit that empties the edge has been begun, and cannot be taken back.
    """

    force: bool
    deadline: datetime | None
    workloads: Workloads
    purge: bool
    begun: bool


@dataclass(frozen=True)
class DeletionDecision:
    """What the row is to say."""

    verb: DeletionVerb
    force: bool
    deadline: datetime
    workloads: Workloads
    purge: bool


def decide_deletion(
    name: str, under_way: DeletionUnderWay | None, request: DeletionRequest, *, now: datetime
) -> DeletionDecision | None:
    """What a request changes; None: nothing. It may bring the deadline of a deletion forward, and never back.

    Args:
        name: of the cluster.
        under_way: None: the cluster is not being deleted.

    Raises:
        Conflict: ``purge_too_late``.
        Invalid: ``purge_impossible``: the deletion under way waits for no edge, or keeps the workloads.
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
    """For a request that was written, with which suspended credentials were let in again.

    Raises:
        Conflict: code ``purge_impossible``: no edge can answer.
    """
    if request.purge and not can_answer:
        raise no_edge_to_purge(name)


def refuse_undeletion(name: str, under_way: DeletionUnderWay | None) -> None:
    """Raises ``Conflict``, code ``not_deleting`` or ``too_late``, where there is no deletion to take back."""
    if under_way is None:
        raise Conflict(
            f"The cluster {name} is not being deleted.",
            code="not_deleting",
            hint="There is nothing to take back; `edgewright cluster show NAME` shows its phase.",
        )
    if under_way.begun:
        raise Conflict(
            f"The deletion of {name} has begun and cannot be taken back.",
            code="too_late",
            hint="Wait for its end, then create the cluster again.",
        )


def desired_again(before: Desired | None) -> Desired:
    """What is desired of a cluster whose deletion is taken back. ``before``: of it; None: nobody has noted that."""
    return before or Desired.PRESENT


def sentence_of_deletion(
    name: str, decision: DeletionDecision, *, can_answer: bool, acceptance: Acceptance, purge: Purge
) -> str:
    """What the timeline says: what became of the deletion, what it waits for, and what stays on the edge."""
    patience = patience_of(
        force=decision.force, can_answer=can_answer, acceptance=acceptance, deadline=decision.deadline
    )
    edge = left_on_edge(purge, acceptance, over=decision.force)
    return f"The deletion of {name} was {decision.verb}; {patience}. {edge}".strip()


def _refuse_late_purge(name: str, under_way: DeletionUnderWay) -> None:
    """The commit that empties the edge brings the rights to purge; one that was made without brings none."""
    if under_way.begun:
        raise purge_too_late(name)
    refuse_purge(force=under_way.force, workloads=under_way.workloads)
