"""Runs the steps of a plan, one at a time, and waits between them."""

import asyncio
from datetime import datetime

from temporalio import workflow
from temporalio.exceptions import ActivityError

from edgewright.domain.cluster import Fence, StepName, StepState, Wanted
from edgewright.domain.conditions import Obstacle
from edgewright.domain.lifecycle import (
    COMMITTING,
    EDGE_GOODBYE,
    WAITS,
    Plan,
    edge_has_answered,
    next_step,
    reason_to_give_up,
    run_from,
)
from edgewright.domain.projection import HELD_UP, Residue, StepRecord
from edgewright.messages.steps import Beginning
from workflows import policies
from workflows.failures import failure_of, superseded
from workflows.publication import Publication, moment
from workflows.step_attempts import Attempt, attempt_alone, attempt_together, forget
from workflows.step_records import StepRecords, circumstances, obstacle_sentence, reason_of

NO_LONGER_THAN_A_PAUSE = "moments of a wrong clock"
"""Patch. Earlier runs wait for the next attempt at a step, however far ahead its time is."""

FIRST_CHANGE = 1
"""The fence of a cluster that was not changed since its creation."""


class StepLane:
    """The steps of the present plan. Each call of ``advance`` starts or ends at most one step."""

    def __init__(
        self,
        publication: Publication,
        plan: str,
        records: tuple[StepRecord, ...],
        residue: tuple[Residue, ...],
        newest_commit: str | None,
        *,
        together: bool = False,
    ) -> None:
        self.records = StepRecords(publication, plan, records, residue)
        self.newest_commit = newest_commit
        self.rendered_digest: str | None = None
        self.waiting_for = ""
        self.obstacle: Obstacle | None = None
        self.wake_at: datetime | None = None
        self.refused = False
        """Whether a fence refused a step, so that the next one needs a new reading."""
        self._failed_in: tuple[object, ...] | None = None
        self._together = together
        """Whether steps may run in one activity; not after that has failed in the present plan."""
        self._may_run_together = together
        self._attempt: Attempt | None = None

    @property
    def running(self) -> bool:
        """Whether an attempt is under way, or has ended and is not recorded yet."""
        return self._attempt is not None

    @property
    def ended(self) -> bool:
        """Whether an attempt has ended and is not recorded yet."""
        return self._attempt is not None and self._attempt.ended

    @property
    def has_just_begun(self) -> bool:
        """Whether a first attempt is too young to be published: most end within milliseconds."""
        if self._attempt is None or self._attempt.ended or self._attempt.hangs:
            return False
        current = self.records.current
        return current is not None and self.records[current].attempts <= 1

    @property
    def what_is_next(self) -> str:
        """Says what happens at ``wake_at``, for the summary of the timer."""
        step = self.records.current
        if self.wake_at is None or step is None:
            return "reviews the conditions"
        return f"gives up {step}" if step in WAITS else f"next attempt at {step}"

    def take(self, plan: Plan) -> None:
        """Switches to a plan; another key cancels the running attempt and starts with fresh records."""
        if self.records.take(plan):
            self.drop()
            self._may_run_together = self._together

    def drop(self) -> None:
        """Cancels the running attempt. If it continues anyway, its fence refuses it."""
        if self._attempt is not None:
            self._attempt.forget()
        self._attempt = None

    def skip(self, step: StepName, because: str, *, actor: str) -> None:
        """Skips a step, and drops an attempt at it."""
        if self._attempt is not None and self._attempt.steps[0] is step:
            self.drop()
        self.records.skip(step, because, actor=actor)

    def take_over(self, beginning: "asyncio.Task[Beginning]", plan: Plan, wanted: Wanted, *, since: datetime) -> None:
        """Takes over the steps that began with the first reading if they are due; drops them otherwise.

        Their fence is only known once they have ended. If the wish has changed by then, they are dropped, and count
        as an attempt.

        Args:
            since: when they began.
        """
        step, fence = next_step(plan, self.records.finished()), _fence_of(wanted)
        steps = self._in_one_go(plan, step, wanted) if step else ()
        of_this_wish = beginning.result().fence in {fence, None} if beginning.done() else fence.change == FIRST_CHANGE
        if len(steps) < 2:
            forget(beginning)
            return
        self.records.begin(steps[0], since)
        if not of_this_wish:
            forget(beginning)
            return
        self._attempt = Attempt(beginning, steps, fence, since=since, circumstances=circumstances(wanted))

    def advance(self, plan: Plan, wanted: Wanted) -> bool:
        """Does what can be done now. True: something changed, look again; False: wait (``wake_at``) for a change."""
        self.waiting_for, self.obstacle, self.wake_at = "", None, None
        step = next_step(plan, self.records.finished())
        if step is None:
            self.drop()
            return False
        fence = _fence_of(wanted)
        attempt = self._attempt
        if attempt is None:
            return self._go_on(plan, step, fence, wanted)
        if not attempt.serves(step, fence):
            self.drop()
            return self._go_on(plan, step, fence, wanted)
        if not attempt.ended:
            since = f", running since {moment(attempt.since)}" if attempt.hangs else ""
            self.waiting_for = f"step {step}, attempt {self.records[step].attempts}{since}"
            return False
        self._end(attempt, step)
        return True

    def _go_on(self, plan: Plan, step: StepName, fence: Fence, wanted: Wanted) -> bool:
        """Starts an attempt if the step is due."""
        record, now = self.records[step], workflow.now()
        if record.state in HELD_UP or step in WAITS:
            because = reason_to_give_up(step, wanted, now)
            if because and not (step in WAITS and edge_has_answered(step, wanted)):
                self.skip(step, because, actor="centre")
                return True
        if step in WAITS:
            return self._wait_for_edge(step, wanted)
        if step in COMMITTING and wanted.paused:
            self.waiting_for = f"step {step}: commits are paused"
            return False
        if record.state is StepState.BLOCKED and self._failed_in == circumstances(wanted):
            self.obstacle = Obstacle(reason=reason_of(record.error_code), sentence=obstacle_sentence(record))
            self.waiting_for = f"step {step}: {record.error}"
            # These are given up at the deadline; for the others it may be long past, and waking them is in vain.
            self.wake_at = wanted.deadline if step in EDGE_GOODBYE else None
            return False
        rests_until = None if self._changed_since(wanted) else _pause_of(record, now)
        if rests_until is not None:
            self.waiting_for = (
                f"step {step}, attempt {record.attempts + 1} at {moment(rests_until)}, because {record.error}"
            )
            self.wake_at = rests_until
            return False
        self._begin(self._in_one_go(plan, step, wanted), fence, wanted)
        return True

    def _in_one_go(self, plan: Plan, step: StepName, wanted: Wanted) -> tuple[StepName, ...]:
        """Returns the step and those that run in the same activity."""
        if not self._may_run_together:
            return (step,)
        return run_from(plan, step, paused=wanted.paused)

    def _changed_since(self, wanted: Wanted) -> bool:
        """Whether the circumstances of a failure have changed. False if it happened in an earlier run."""
        return self._failed_in is not None and self._failed_in != circumstances(wanted)

    def _begin(self, steps: tuple[StepName, ...], fence: Fence, wanted: Wanted) -> None:
        now = workflow.now()
        number = self.records.begin(steps[0], now)
        alone = len(steps) == 1
        work = attempt_alone(steps[0], fence, number=number) if alone else attempt_together(steps, fence)
        self._attempt = Attempt(
            asyncio.create_task(work), steps, fence, since=now, circumstances=circumstances(wanted)
        )

    def _end(self, attempt: Attempt, step: StepName) -> None:
        """Records how an attempt ended."""
        self._attempt = None
        try:
            finished = attempt.finished()
        except ActivityError as error:
            if superseded(error):
                self.records.take_back(step, attempts=self.records[step].attempts)
                self.refused = True
                return
            self.records.fail(step, failure_of(error))
            self._failed_in = attempt.circumstances  # not what has been read since: that may hold the cure
            return
        for done in finished:
            self.records.complete(done)
            self.newest_commit = done.result.commit or self.newest_commit
            self.rendered_digest = done.result.rendered_digest or self.rendered_digest
        if len(finished) < len(attempt.steps):
            self._may_run_together = False
        if not finished:
            self.records.take_back(step, attempts=0)

    def _wait_for_edge(self, step: StepName, wanted: Wanted) -> bool:
        if edge_has_answered(step, wanted):
            self.records.answered(step)
            return True
        if self.records[step].state is StepState.PENDING:
            self.records.await_edge(step)
        until = f" until {moment(wanted.deadline)}" if wanted.deadline else ""
        self.waiting_for = f"the edge ({step}){until}"
        self.wake_at = wanted.deadline
        return False


def _pause_of(record: StepRecord, now: datetime) -> datetime | None:
    """Returns until when a failed step waits; None if it is due. Ignores a time that is further ahead than the
    longest pause: it comes from a wrong clock."""
    at = record.next_at
    if record.state is not StepState.WAITING or at is None or at <= now:
        return None
    return None if at - now > policies.LONGEST_BACKOFF and workflow.patched(NO_LONGER_THAN_A_PAUSE) else at


def _fence_of(wanted: Wanted) -> Fence:
    return Fence(cluster=wanted.uuid, generation=wanted.generation, change=wanted.change)
