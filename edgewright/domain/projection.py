"""What a workflow publishes about its cluster, for lists, pages and fallbacks."""

from collections.abc import Set
from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import AwareDatetime

from edgewright.domain.bounds import AtMost, Sentence, Word, WordOf
from edgewright.domain.cluster import (
    Condition,
    ConditionStatus,
    ConditionType,
    Frozen,
    Order,
    Phase,
    Resealing,
    StepName,
    StepState,
)


class PlanKind(StrEnum):
    """The purpose of a plan, which is the first word of its key. IDLE: there is nothing to do."""

    IDLE = "idle"
    COMMISSION = "commission"
    RENDER = "render"
    REMOVE = "remove"
    DELETE = "delete"

    @classmethod
    def of(cls, key: str) -> "PlanKind | None":
        """Returns the kind of the plan with a key; None before the first plan, or for a kind of a newer program."""
        word = key.partition("/")[0]
        return next((kind for kind in cls if kind == word), None)


FINISHED = frozenset({StepState.DONE, StepState.SKIPPED})
"""States of a step that let a plan continue."""
HELD_UP = frozenset({StepState.WAITING, StepState.BLOCKED})
"""States of a step that can be retried at once after a failure."""


class StepRecord(Frozen):
    """The life of one step.

    Args:
        attempts: rounds that the workflow started; each may include a few quick retries.
        next_at: when a waiting step is retried.
        error: the last error, as a sentence; empty after a success.
    """

    name: StepName
    state: WordOf[StepState] = StepState.PENDING
    attempts: int = 0
    started_at: AwareDatetime | None = None
    finished_at: AwareDatetime | None = None
    next_at: AwareDatetime | None = None
    error: Sentence = ""
    error_code: Word = ""
    hint: Sentence = ""
    skipped_because: Sentence = ""

    # Each returns what the record is then, and raises ValueError if the step cannot come to that from where it is.

    def begin(self, now: datetime) -> "StepRecord":
        """Starts an attempt. A lost run may have left the record of an attempt under way."""
        self._refuse(FINISHED, "begin")
        began = self.started_at or now
        return self._as(StepState.RUNNING, attempts=self.attempts + 1, started_at=began, next_at=None)

    def await_edge(self, now: datetime) -> "StepRecord":
        """Asks the edge to do its part, for the first time."""
        self._refuse(frozenset(StepState) - {StepState.PENDING}, "wait for the edge")
        return self._as(StepState.RUNNING, attempts=1, started_at=now)

    def complete(self, now: datetime) -> "StepRecord":
        """Marks the step as done, alone or as one of several in one activity."""
        self._refuse({StepState.SKIPPED}, "be done")
        return self._as(
            StepState.DONE,
            attempts=max(1, self.attempts),
            started_at=self.started_at or now,
            finished_at=now,
            error="",
            error_code="",
            hint="",
        )

    def answered(self, now: datetime) -> "StepRecord":
        """Records that the edge has done its part, whether or not it was asked."""
        self._refuse(FINISHED, "be answered")
        return self._as(StepState.DONE, finished_at=now)

    def fail(self, *, error: str, code: str, hint: str, next_at: datetime | None) -> "StepRecord":
        """Records a failed attempt. ``next_at``: time of the next one; None: not before a person has acted."""
        self._refuse(frozenset(StepState) - {StepState.RUNNING}, "fail")
        state = StepState.BLOCKED if next_at is None else StepState.WAITING
        return self._as(state, next_at=next_at, error=error, error_code=code, hint=hint)

    def take_back(self, *, attempts: int) -> "StepRecord":
        """Drops the attempt under way. ``attempts``: how many still count."""
        self._refuse(frozenset(StepState) - {StepState.RUNNING}, "be taken back")
        return self._as(StepState.PENDING, attempts=attempts)

    def retry(self) -> "StepRecord":
        """Makes the step due now."""
        self._refuse(frozenset(StepState) - HELD_UP, "be tried again")
        return self._as(StepState.PENDING, next_at=None)

    def skip(self, now: datetime, *, because: str) -> "StepRecord":
        """Lets the plan continue without the step."""
        self._refuse(FINISHED, "be skipped")
        return self._as(StepState.SKIPPED, finished_at=now, next_at=None, skipped_because=because)

    def _as(self, state: StepState, **changes: str | int | datetime | None) -> "StepRecord":
        return self.model_copy(update={"state": state, **changes})

    def _refuse(self, states: Set[StepState], what: str) -> None:
        if self.state in states:
            raise ValueError(f"step {self.name} is {self.state} and cannot {what}")


class Failing(Frozen):
    """A failed step.

    Args:
        state: WAITING for its next attempt, or BLOCKED until a person acts.
        step: None when no step has begun: the templates cannot be rendered.
    """

    state: StepState
    step: StepName | None = None


class Residue(Frozen):
    """What a deletion could not clean up."""

    step: StepName
    reason: Sentence
    since: AwareDatetime


class Done(Frozen):
    """What finished plans have reached.

    Args:
        generation, commissioning: numbers of the last finished commissioning; 0 before the first.
        rendered_digest: digest of the inputs of the files in the repository.
        removed: the commissioning whose central removal has finished; 0: none.
    """

    generation: int = 0
    commissioning: int = 0
    rendered_digest: Word | None = None
    removed: int = 0


class Projection(Frozen):
    """One cluster as its workflow sees it. A restarted workflow continues from here.

    Args:
        sequence: incremented with each projection of a cluster; an older one never overwrites a newer one.
        ready: the cluster is commissioned, and its setup status says ``ready: true``.
        plan: key of the plan that ``steps`` belong to.
        change_done: the newest change of the row that the workflow has read.
        waiting_for: what the cluster waits for, in one sentence; empty: nothing.
        lease_epoch: the newest lease transition that the workflow has processed.
        order: what the agent is asked to do.
        desired_revision: the newest commit that the centre made for the cluster.
        resealing: see ``Wanted``.
    """

    sequence: int
    phase: Phase
    ready: bool
    done: Done = Done()
    plan: Word = ""
    change_done: int = 0
    waiting_for: Sentence = ""
    conditions: Annotated[tuple[Condition, ...], AtMost(16)] = ()
    steps: Annotated[tuple[StepRecord, ...], AtMost(32)] = ()
    residue: Annotated[tuple[Residue, ...], AtMost(32)] = ()
    lease_epoch: int = 0
    order: Order = Order.NONE
    desired_revision: Word | None = None
    resealing: Resealing | None = None

    @property
    def face(self) -> tuple[object, ...]:
        """Everything that lists and conditions show, except sentences."""
        return self.phase, self.lease_epoch, tuple(condition.status for condition in self.conditions)

    @property
    def underway(self) -> bool:
        """Whether the plan has an unfinished step, which runs, waits, or is blocked."""
        left = any(record.state not in FINISHED for record in self.steps)
        over = self.phase is Phase.DELETED  # whoever tells that may have forgotten the steps that led there
        return (
            left and not over and PlanKind.of(self.plan) is not PlanKind.IDLE
        )  # that plan keeps the steps of the one before it

    @property
    def failing(self) -> Failing | None:
        """The failed step, which is blocked or waits for another attempt; None if nothing has failed."""
        blocked = self.status_of(ConditionType.BLOCKED) is ConditionStatus.TRUE
        for record in self.steps:
            if record.state is StepState.BLOCKED or (blocked and record.state not in FINISHED):
                return Failing(state=StepState.BLOCKED, step=record.name)
            if record.state is StepState.WAITING or (record.state is StepState.RUNNING and record.error):
                return Failing(state=StepState.WAITING, step=record.name)
        return Failing(state=StepState.BLOCKED) if blocked else None

    def condition(self, kind: ConditionType) -> Condition | None:
        """Returns one condition; None if it was never stated."""
        return next((condition for condition in self.conditions if condition.type == kind), None)

    def status_of(self, kind: ConditionType) -> ConditionStatus:
        """Returns the status of one condition; Unknown if it was never stated."""
        stated = self.condition(kind)
        return stated.status if stated else ConditionStatus.UNKNOWN
