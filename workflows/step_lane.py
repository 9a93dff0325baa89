"""Runs the steps of a plan, one at a time, and remembers how each went."""

import asyncio
from datetime import datetime

from temporalio import workflow
from temporalio.exceptions import ActivityError

from edgewright.domain.cluster import Fence, StepName, StepState, Wanted
from edgewright.domain.conditions import Obstacle
from edgewright.domain.events import EventKind
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
from edgewright.messages.steps import Beginning, FinishedStep, StepFailure, StepsResult
from workflows import policies
from workflows.failures import failure_of, superseded
from workflows.publication import Publication, moment
from workflows.step_attempts import attempt_alone, attempt_together
from workflows.step_records import StepRecords, circumstances, obstacle_sentence, reason_of

TOLD_WHILE_RUNNING = "tell of attempts that take long"
"""Patch. Runs that began before it tell of a first attempt when it has ended."""
NO_LONGER_THAN_A_PAUSE = "moments of a wrong clock"
"""Patch. Runs that began before it wait for the next attempt at a step however far ahead it lies."""

FIRST_CHANGE = 1
"""The fence of a cluster of which nothing was changed since it was made."""


class StepLane(StepRecords):
    """The steps of the present plan. ``advance`` starts or ends at most one step at each call."""

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
        super().__init__(publication, plan, records, residue)
        self.newest_commit = newest_commit
        self.rendered_digest: str | None = None
        self.waiting_for = ""
        self.obstacle: Obstacle | None = None
        self.wake_at: datetime | None = None
        self.refused = False
        """Whether a fence has refused a step: what is wanted has to be read again before the next one."""
        self._started_in: tuple[object, ...] | None = None
        self._failed_in: tuple[object, ...] | None = None
        self._together = together
        """Whether steps may be run in one go; not after that has failed in the present plan."""
        self._may_run_together = together
        self._asked_for = 0
        self._began: datetime | None = None
        self._task: asyncio.Task[StepsResult] | asyncio.Task[Beginning] | None = None
        self._running: tuple[StepName, Fence] | None = None

    @property
    def resting(self) -> bool:
        """Whether nothing runs, or what runs has ended."""
        return self._task is None or self._task.done()

    @property
    def running(self) -> bool:
        return self._task is not None

    @property
    def what_is_next(self) -> str:
        """What happens when ``wake_at`` comes, for the summary of the timer."""
        step = self.current
        if self.wake_at is None or step is None:
            return "reviews the conditions"
        return f"gives up {step}" if step in WAITS else f"next attempt at {step}"

    @property
    def hangs(self) -> bool:
        """Whether an attempt runs for longer than one that goes well, so that people want to know since when."""
        if self.resting or self._began is None or workflow.now() - self._began < policies.LONG_ATTEMPT:
            return False
        return workflow.patched(TOLD_WHILE_RUNNING)

    def take(self, plan: Plan) -> None:
        """Goes over to a plan; another key drops what runs and starts with fresh records."""
        if plan.key == self.plan:
            for step in plan.steps:
                self.records.setdefault(step, StepRecord(name=step))
            return
        self.drop()
        self.plan = plan.key
        self._may_run_together = self._together
        if plan.steps:
            self.records = {step: StepRecord(name=step) for step in plan.steps}

    def drop(self) -> None:
        """Cancels what runs. An attempt that goes on all the same is refused by its fence."""
        if self._task is not None:
            forget(self._task)
        self._task = None
        self._running = None

    def take_over(self, beginning: "asyncio.Task[Beginning]", plan: Plan, wanted: Wanted, *, since: datetime) -> None:
        """Takes steps that were begun with the first reading for those that are due, or drops them if others are.

        Until they have ended, nobody knows under which fence: of a wish that has changed already, they are dropped,
        and count as an attempt.

        Args:
            since: when they were begun.
        """
        step, fence = next_step(plan, self.finished()), _fence_of(wanted)
        steps = self._in_one_go(plan, step, wanted) if step else ()
        of_this_wish = beginning.result().fence in {fence, None} if beginning.done() else fence.change == FIRST_CHANGE
        if step is None or len(steps) < 2:
            forget(beginning)
            return
        self._note_start(steps, since)
        if not of_this_wish:
            forget(beginning)
            return
        self._started_in = circumstances(wanted)
        self._running = (step, fence)
        self._task = beginning

    def advance(self, plan: Plan, wanted: Wanted) -> bool:
        """Does what can be done now. True: something moved, look again; False: wait (``wake_at``) for a change."""
        self.waiting_for, self.obstacle, self.wake_at = "", None, None
        step = next_step(plan, self.finished())
        if step is None:
            self.drop()
            return False
        fence = _fence_of(wanted)
        if self._task is not None:
            if self._running != (step, fence):
                self.drop()
            elif not self._task.done():
                since = f", running since {moment(self._began)}" if self._began and self.hangs else ""
                self.waiting_for = f"step {step}, attempt {self.records[step].attempts}{since}"
                return False
            else:
                self._end(step)
                return True
        return self._begin(plan, step, fence, wanted)

    def _begin(self, plan: Plan, step: StepName, fence: Fence, wanted: Wanted) -> bool:
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
        self._started_in = circumstances(wanted)
        self._running = (step, fence)
        self._start(self._in_one_go(plan, step, wanted), fence)
        return True

    def _in_one_go(self, plan: Plan, step: StepName, wanted: Wanted) -> tuple[StepName, ...]:
        """The step, with those that are run in the same activity."""
        if not self._may_run_together:
            return (step,)
        return run_from(plan, step, paused=wanted.paused)

    def _changed_since(self, wanted: Wanted) -> bool:
        """Whether what a step failed in is different now. Unknown, because that was in a run before this one: no."""
        return self._failed_in is not None and self._failed_in != circumstances(wanted)

    def _start(self, steps: tuple[StepName, ...], fence: Fence) -> None:
        number = self._note_start(steps, workflow.now())
        if len(steps) > 1:
            self._task = asyncio.create_task(attempt_together(steps, fence))
        else:
            self._task = asyncio.create_task(attempt_alone(steps[0], fence, number=number))

    def _note_start(self, steps: tuple[StepName, ...], since: datetime) -> int:
        """Returns which attempt at the first of the steps it is."""
        record = self.records[steps[0]]
        self.records[steps[0]] = begun = record.begin(since)
        self._began = since
        self._asked_for = len(steps)
        return begun.attempts

    def _end(self, step: StepName) -> None:
        task, running, self._task, self._running = self._task, self._running, None, None
        if task is None or running is None:
            return
        try:
            result = task.result()
        except ActivityError as error:
            if superseded(error):
                self.records[step] = self.records[step].take_back(attempts=self.records[step].attempts)
                self.refused = True
                return
            self._note_failure(step, failure_of(error))
            return
        of_another_wish = isinstance(result, Beginning) and result.fence != running[1]
        finished = () if of_another_wish else result.finished
        for done in finished:
            self._note_done(done)
        if len(finished) < self._asked_for:
            self._may_run_together = False
        if not finished:
            self.records[step] = self.records[step].take_back(attempts=0)

    def _note_done(self, done: FinishedStep) -> None:
        record, result, now = self.records[done.step].complete(workflow.now()), done.result, workflow.now()
        self.records[done.step] = record
        self.newest_commit = result.commit or self.newest_commit
        self.rendered_digest = result.rendered_digest or self.rendered_digest
        began = record.started_at or now
        took = (now - began).total_seconds() if done.seconds is None else done.seconds
        sentence = f"Step {done.step} done." + (f" {result.note}" if result.note else "")
        self._publication.tell(
            EventKind.STEP_DONE,
            sentence,
            step=done.step.value,
            attempts=record.attempts,
            seconds=round(took, 3),
            commit=result.commit,
        )

    def _note_failure(self, step: StepName, failure: StepFailure) -> None:
        record = self.records[step]
        wait = policies.backoff(record.attempts)
        if failure.retry_after is not None:
            wait = max(wait, min(policies.LONGEST_BACKOFF, policies.seconds(failure.retry_after)))
        next_at = None if failure.permanent else workflow.now() + wait
        self.records[step] = record.fail(
            error=failure.sentence, code=failure.code, hint=failure.hint, next_at=next_at
        )
        self._failed_in = self._started_in  # not what has been read since: that may hold the cure
        self._publication.tell(
            EventKind.STEP_BLOCKED if failure.permanent else EventKind.STEP_FAILED,
            f"Step {step} failed: {failure.sentence}",
            step=step.value,
            attempts=record.attempts,
            code=failure.code,
            where=failure.where,
            next_at=moment(next_at) if next_at else None,
        )

    def _wait_for_edge(self, step: StepName, wanted: Wanted) -> bool:
        record, now = self.records[step], workflow.now()
        if edge_has_answered(step, wanted):
            self.records[step] = record.answered(now)
            self._publication.tell(EventKind.STEP_DONE, f"Step {step} done: the edge has answered.", step=step.value)
            return True
        if record.state is StepState.PENDING:
            self.records[step] = record.await_edge(now)
        until = f" until {moment(wanted.deadline)}" if wanted.deadline else ""
        self.waiting_for = f"the edge ({step}){until}"
        self.wake_at = wanted.deadline
        return False

    def skip(self, step: StepName, because: str, *, actor: str) -> None:
        """Goes on without a step; what it leaves behind becomes residue."""
        if self._running is not None and self._running[0] is step:
            self.drop()
        record, now = self.records[step], workflow.now()
        self.records[step] = record.skip(now, because=because)
        reason = because + (f" (last error: {record.error})" if record.error else "")
        self.residue.append(Residue(step=step, reason=reason, since=now))
        self._publication.tell(
            EventKind.STEP_SKIPPED, f"Step {step} was skipped: {because}.", actor=actor, step=step.value
        )


def _pause_of(record: StepRecord, now: datetime) -> datetime | None:
    """Until when a step that has failed waits; None if it is due. A moment further ahead than the longest pause was
    written by a clock that was wrong, and is none."""
    at = record.next_at
    if record.state is not StepState.WAITING or at is None or at <= now:
        return None
    return None if at - now > policies.LONGEST_BACKOFF and workflow.patched(NO_LONGER_THAN_A_PAUSE) else at


def _fence_of(wanted: Wanted) -> Fence:
    return Fence(cluster=wanted.uuid, generation=wanted.generation, change=wanted.change)


def forget(task: "asyncio.Task[StepsResult] | asyncio.Task[Beginning]") -> None:
    """Cancels an attempt; however it ends, nobody wants to know."""
    task.cancel()
    task.add_done_callback(_heard)


def _heard(task: "asyncio.Task[StepsResult] | asyncio.Task[Beginning]") -> None:
    """Takes notice of how a dropped attempt ended, or its end would be logged as an error that nobody has heard."""
    if not task.cancelled():
        task.exception()
