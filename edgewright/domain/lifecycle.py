"""Decides what a cluster's workflow does next, from what is wanted and what is done. All functions are pure.

A *plan* is the ordered list of steps that leads from what is done to what is wanted. Its ``key`` names its kind and
the wish that it serves; steps that are done for a key are not repeated for the same key. Whenever the wish changes
(another generation, another commissioning, a removal, a deletion), the key and the plan change. That is how a
deletion wins over a stuck step.
"""

from collections.abc import Collection
from datetime import datetime
from itertools import takewhile
from typing import assert_never

from edgewright.domain.cluster import Acceptance, Desired, Frozen, Order, Phase, StepName, Wanted, Workloads
from edgewright.domain.projection import Done, PlanKind

COMMISSIONING = (
    StepName.ALLOCATE_ADDRESS,
    StepName.CREATE_ACCOUNTS,
    StepName.CREATE_REPOSITORY,
    StepName.POPULATE_REPOSITORY,
    StepName.PUBLISH_STATUS,
)
RENDERING = (StepName.POPULATE_REPOSITORY, StepName.PUBLISH_STATUS)
REMOVAL = (StepName.SUSPEND_CREDENTIALS, StepName.WITHDRAW_STATUS)
EDGE_GOODBYE = (StepName.REMOVE_WORKLOADS, StepName.AWAIT_EMPTY, StepName.AWAIT_GOODBYE)
CENTRAL_DELETION = (
    StepName.REVOKE_CREDENTIALS,
    StepName.REMOVE_ACCOUNTS,
    StepName.REMOVE_ADDRESS,
    StepName.ARCHIVE_REPOSITORY,
    StepName.REMOVE_EDGE_STATUS,
    StepName.REMOVE_SETUP_STATUS,
)
WAITS = frozenset({StepName.AWAIT_EMPTY, StepName.AWAIT_GOODBYE})
"""Steps that the edge finishes, not the centre."""
COMMITTING = frozenset({StepName.POPULATE_REPOSITORY, StepName.WITHDRAW_SECRETS})
"""Steps that a pause holds back. A deletion continues."""
TOGETHER = frozenset(COMMISSIONING)
"""Steps that usually take milliseconds, and may run in one activity."""


class Plan(Frozen):
    """Steps in order, and the wish that they serve. No steps: there is nothing to do.

    Args:
        wish: distinguishes plans of one kind; empty: there is only one.
    """

    kind: PlanKind
    wish: str = ""
    steps: tuple[StepName, ...] = ()

    @property
    def key(self) -> str:
        """The key, as in a projection."""
        return f"{self.kind}/{self.wish}" if self.wish else self.kind.value


def plan_for(wanted: Wanted, done: Done) -> Plan:
    """Returns the plan that leads from ``done`` to ``wanted``."""
    if wanted.desired is Desired.DELETED:
        return _deletion(wanted)
    if wanted.desired is Desired.REMOVED:
        return Plan(kind=PlanKind.REMOVE, wish=f"{wanted.commissioning}", steps=_removal(wanted, done))
    if (done.generation, done.commissioning) != (wanted.generation, wanted.commissioning):
        return _commissioning(wanted, done)
    if wanted.render_digest is not None and (wanted.rendering_begun or wanted.render_digest != done.rendered_digest):
        return Plan(kind=PlanKind.RENDER, wish=f"{wanted.render_digest[:16]}/{wanted.change}", steps=RENDERING)
    return Plan(kind=PlanKind.IDLE)


def _removal(wanted: Wanted, done: Done) -> tuple[StepName, ...]:
    """Includes the secrets of abandoned hardware if the removal came before the move to new hardware was done."""
    if done.removed == wanted.commissioning:
        return ()
    moved = done.generation and done.generation != wanted.generation
    return (*REMOVAL, StepName.WITHDRAW_SECRETS) if moved else REMOVAL


def _commissioning(wanted: Wanted, done: Done) -> Plan:
    before: tuple[StepName, ...] = ()
    if done.commissioning:
        before += (StepName.WITHDRAW_STATUS,)
    if done.generation and done.generation != wanted.generation:
        before += (StepName.WITHDRAW_SECRETS,)
    wish = f"{wanted.generation}/{wanted.commissioning}"
    return Plan(kind=PlanKind.COMMISSION, wish=wish, steps=before + COMMISSIONING)


def _deletion(wanted: Wanted) -> Plan:
    return Plan(kind=PlanKind.DELETE, wish=f"{wanted.commissioning}", steps=_steps_of_deletion(wanted))


def _steps_of_deletion(wanted: Wanted) -> tuple[StepName, ...]:
    if wanted.closed:
        return ()
    if not wanted.bootstrapped:
        return (StepName.BEGIN_DELETION, *CENTRAL_DELETION)
    goodbye = EDGE_GOODBYE if wanted.workloads is Workloads.REMOVE else (StepName.AWAIT_GOODBYE,)
    return (StepName.BEGIN_DELETION, *goodbye, *CENTRAL_DELETION)


def next_step(plan: Plan, finished: Collection[StepName]) -> StepName | None:
    """Returns the first unfinished step of the plan, or None."""
    return next((step for step in plan.steps if step not in finished), None)


def run_from(plan: Plan, step: StepName, *, paused: bool) -> tuple[StepName, ...]:
    """Returns the steps from ``step`` on that may run in one activity, or ``step`` alone."""

    def may_follow(other: StepName) -> bool:
        return other in TOGETHER and not (paused and other in COMMITTING)

    following = takewhile(may_follow, plan.steps[plan.steps.index(step) :])
    return tuple(following) or (step,)


def finish(plan: Plan, wanted: Wanted, done: Done, rendered_digest: str | None) -> Done:
    """Returns what is done once every step of the plan is done."""
    match plan.kind:
        case PlanKind.COMMISSION:
            return Done(
                generation=wanted.generation, commissioning=wanted.commissioning, rendered_digest=rendered_digest
            )
        case PlanKind.REMOVE:
            return done.model_copy(update={"removed": wanted.commissioning, "commissioning": 0})
        case PlanKind.RENDER:
            return done.model_copy(update={"rendered_digest": rendered_digest})
        case PlanKind.IDLE | PlanKind.DELETE:
            return done


def edge_has_answered(step: StepName, wanted: Wanted) -> bool:
    """Whether the edge has done its part of a step of ``WAITS``."""
    if wanted.detached_at is not None:
        return True
    return step is StepName.AWAIT_EMPTY and wanted.inventory_empty_at is not None


def is_skippable(step: StepName) -> bool:
    """Whether a step is a deletion step on another system, whose remains can become residue.

    Credentials are not skippable: whoever deletes a cluster relies on their revocation.
    """
    match step:
        case (
            StepName.REMOVE_WORKLOADS
            | StepName.AWAIT_EMPTY
            | StepName.AWAIT_GOODBYE
            | StepName.REMOVE_ACCOUNTS
            | StepName.REMOVE_ADDRESS
            | StepName.ARCHIVE_REPOSITORY
            | StepName.REMOVE_EDGE_STATUS
        ):
            return True
        case (
            StepName.WITHDRAW_STATUS
            | StepName.SUSPEND_CREDENTIALS
            | StepName.WITHDRAW_SECRETS
            | StepName.ALLOCATE_ADDRESS
            | StepName.CREATE_ACCOUNTS
            | StepName.CREATE_REPOSITORY
            | StepName.POPULATE_REPOSITORY
            | StepName.PUBLISH_STATUS
            | StepName.BEGIN_DELETION
            | StepName.REVOKE_CREDENTIALS
            | StepName.REMOVE_SETUP_STATUS
        ):
            return False
        case _:
            assert_never(step)


def reason_to_give_up(step: StepName, wanted: Wanted, now: datetime) -> str:
    """Returns why a deletion continues without a step of ``EDGE_GOODBYE``; empty while it must wait."""
    if step not in EDGE_GOODBYE:
        return ""
    if wanted.force:
        return "the deletion was forced"
    if step in WAITS and not wanted.can_answer:
        return "the edge has no credential to answer with: it was never accepted, or all were revoked"
    if wanted.deadline is not None and now >= wanted.deadline:
        return "the deadline of the deletion has passed"
    return ""


def order_for(step: StepName | None) -> Order:
    """Returns what the agent is asked to do during a step."""
    match step:
        case StepName.AWAIT_EMPTY:
            return Order.REPORT_EMPTY
        case StepName.AWAIT_GOODBYE:
            return Order.DETACH
        case _:
            return Order.NONE


def phase_of(wanted: Wanted, *, commissioned: bool) -> Phase:
    """Returns the phase. ``commissioned``: the plan of the present commissioning has finished."""
    if wanted.desired is Desired.DELETED:
        return Phase.DELETED if wanted.closed else Phase.DETACHING
    if wanted.desired is Desired.REMOVED:
        return Phase.REMOVED
    if not commissioned:
        return Phase.COMMISSIONING
    if wanted.acceptance is Acceptance.PENDING:
        return Phase.PENDING_ACCEPTANCE
    if wanted.acceptance is Acceptance.ACCEPTED or wanted.edge_reported_at is not None:
        return Phase.ACTIVE
    return Phase.AWAITING_BOOTSTRAP
