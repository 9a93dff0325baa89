"""How the steps of a cluster's present plan stand, how each came to that, and what may be asked of them."""

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
    """A record for each step, in the order of the plan; and what a deletion has left behind. What happens to a step
    is noted here, and told."""

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
        """The step that is running or waited for, or None."""
        return next((name for name, record in self._records.items() if record.state not in FINISHED), None)

    def finished(self) -> frozenset[StepName]:
        return frozenset(name for name, record in self._records.items() if record.state in FINISHED)

    def take(self, plan: Plan) -> bool:
        """Goes over to a plan; another key starts with fresh records. Returns whether it is another one."""
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
        """Goes on without a step; what it leaves behind becomes residue."""
        record, now = self._records[step], workflow.now()
        self._records[step] = record.skip(now, because=because)
        reason = because + (f" (last error: {record.error})" if record.error else "")
        self._residue.append(Residue(step=step, reason=reason, since=now))
        self._publication.tell(
            EventKind.STEP_SKIPPED, f"Step {step} was skipped: {because}.", actor=actor, step=step.value
        )

    # --- what happens to a step -------------------------------------------------------------------------

    def begin(self, step: StepName, since: datetime) -> int:
        """An attempt has begun. Returns which one it is."""
        self._records[step] = begun = self._records[step].begin(since)
        return begun.attempts

    def take_back(self, step: StepName, *, attempts: int) -> None:
        """The attempt under way does not count; ``attempts``: those that do."""
        self._records[step] = self._records[step].take_back(attempts=attempts)

    def complete(self, done: FinishedStep) -> None:
        """An attempt went well."""
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
        """An attempt has failed. The next one is due after a pause, unless a person has to act first."""
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
        """The edge is asked to do its part."""
        self._records[step] = self._records[step].await_edge(workflow.now())

    def answered(self, step: StepName) -> None:
        """The edge has done its part."""
        self._records[step] = self._records[step].answered(workflow.now())
        self._publication.tell(EventKind.STEP_DONE, f"Step {step} done: the edge has answered.", step=step.value)


def circumstances(wanted: Wanted) -> tuple[object, ...]:
    """What a step has failed in; when it differs, the step is tried again at once.

    A blocked step is tried once by each run, too: a run before this one may have been blocked in anything.
    """
    return (wanted.change, wanted.render_digest, wanted.render_problem)


def reason_of(code: str) -> str:
    """An error code as a condition's reason: ``name_taken`` -> ``NameTaken``."""
    return "".join(word.capitalize() for word in code.split("_")) or "Blocked"


def obstacle_sentence(record: StepRecord) -> str:
    """What stands in the way of a step, and what to do."""
    hint = f" {record.hint}" if record.hint else ""
    return f"Step {record.name}: {record.error}{hint}"
