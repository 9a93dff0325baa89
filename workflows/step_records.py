"""The state of each step in a cluster's present plan, its transitions, and the verbs that apply to it."""

from datetime import datetime

from temporalio import workflow

from edgewright.domain.cluster import StepName, Wanted
from edgewright.domain.events import EventKind
from edgewright.domain.lifecycle import Plan, is_skippable
from edgewright.domain.projection import FINISHED, HELD_UP, PlanKind, Residue, StepRecord
from edgewright.messages.steps import FinishedStep, StepFailure
from workflows import policies
from workflows.publication import Publication, moment


class StepRecords:
    """A record for each step, in the order of the plan, and the residue of a deletion. Records and publishes what
    happens to a step."""

    def __init__(
        self, publication: Publication, plan: str, records: tuple[StepRecord, ...], residue: tuple[Residue, ...]
    ) -> None:
        self._publication = publication
        self.plan = plan
        self._records = {record.name: record for record in records}
        self._residue = list(residue)

    def __getitem__(self, step: StepName) -> StepRecord:
        return self._records[step]

    @property
    def in_order(self) -> tuple[StepRecord, ...]:
        return tuple(self._records.values())

    @property
    def residue(self) -> tuple[Residue, ...]:
        return tuple(self._residue)

    @property
    def current(self) -> StepName | None:
        """The step that is running or waiting, or None."""
        return next((name for name, record in self._records.items() if record.state not in FINISHED), None)

    def finished(self) -> frozenset[StepName]:
        return frozenset(name for name, record in self._records.items() if record.state in FINISHED)

    def take(self, plan: Plan) -> bool:
        """Switches to a plan; another key starts with fresh records. Returns whether the plan is another one."""
        if plan.key == self.plan:
            for step in plan.steps:
                self._records.setdefault(step, StepRecord(name=step))
            return False
        self.plan = plan.key
        if plan.steps:
            self._records = {step: StepRecord(name=step) for step in plan.steps}
        return True

    # --- what is asked of a step ------------------------------------------------------------------------

    def can_retry(self, step: StepName) -> bool:
        record = self._records.get(step)
        return record is not None and record.state in HELD_UP

    def can_skip(self, step: StepName) -> bool:
        record = self._records.get(step)
        return (
            PlanKind.of(self.plan) is PlanKind.DELETE
            and is_skippable(step)
            and record is not None
            and record.state not in FINISHED
            and step is self.current
        )

    def retry(self, step: StepName, *, actor: str) -> None:
        """Makes a waiting or blocked step due now; does nothing otherwise."""
        if self.can_retry(step):
            self._records[step] = self._records[step].retry()
            self._publication.tell(
                EventKind.STEP_RETRIED, f"Step {step} is tried again.", actor=actor, step=step.value
            )

    def skip(self, step: StepName, because: str, *, actor: str) -> None:
        """Skips a step; what it leaves behind becomes residue."""
        record, now = self._records[step], workflow.now()
        self._records[step] = record.skip(now, because=because)
        reason = because + (f" (last error: {record.error})" if record.error else "")
        self._residue.append(Residue(step=step, reason=reason, since=now))
        self._publication.tell(
            EventKind.STEP_SKIPPED, f"Step {step} was skipped: {because}.", actor=actor, step=step.value
        )

    # --- what happens to a step -------------------------------------------------------------------------

    def begin(self, step: StepName, since: datetime) -> int:
        """Records the start of an attempt. Returns its number."""
        self._records[step] = begun = self._records[step].begin(since)
        return begun.attempts

    def take_back(self, step: StepName, *, attempts: int) -> None:
        """Drops the attempt under way. ``attempts``: how many still count."""
        self._records[step] = self._records[step].take_back(attempts=attempts)

    def complete(self, done: FinishedStep) -> None:
        """Records a successful attempt."""
        record, result, now = self._records[done.step].complete(workflow.now()), done.result, workflow.now()
        self._records[done.step] = record
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

    def fail(self, step: StepName, failure: StepFailure) -> None:
        """Records a failed attempt. The next one is due after a pause, unless a person has to act first."""
        record = self._records[step]
        wait = policies.backoff(record.attempts)
        if failure.retry_after is not None:
            wait = max(wait, min(policies.LONGEST_BACKOFF, policies.seconds(failure.retry_after)))
        next_at = None if failure.permanent else workflow.now() + wait
        self._records[step] = record.fail(
            error=failure.sentence, code=failure.code, hint=failure.hint, next_at=next_at
        )
        self._publication.tell(
            EventKind.STEP_BLOCKED if failure.permanent else EventKind.STEP_FAILED,
            f"Step {step} failed: {failure.sentence}",
            step=step.value,
            attempts=record.attempts,
            code=failure.code,
            where=failure.where,
            next_at=moment(next_at) if next_at else None,
        )

    def await_edge(self, step: StepName) -> None:
        """Records that the edge is asked to do its part."""
        self._records[step] = self._records[step].await_edge(workflow.now())

    def answered(self, step: StepName) -> None:
        """Records that the edge has done its part."""
        self._records[step] = self._records[step].answered(workflow.now())
        self._publication.tell(EventKind.STEP_DONE, f"Step {step} done: the edge has answered.", step=step.value)


def circumstances(wanted: Wanted) -> tuple[object, ...]:
    """Returns the circumstances of an attempt; if they change after a failure, the step is retried at once.

    Each run also retries a blocked step once, because it does not know the circumstances of an earlier run.
    """
    return (wanted.change, wanted.render_digest, wanted.render_problem)


def reason_of(code: str) -> str:
    """Turns an error code into the reason of a condition: ``name_taken`` -> ``NameTaken``."""
    return "".join(word.capitalize() for word in code.split("_")) or "Blocked"


def obstacle_sentence(record: StepRecord) -> str:
    """Says what blocks a step, and what to do."""
    hint = f" {record.hint}" if record.hint else ""
    return f"Step {record.name}: {record.error}{hint}"
