"""How the steps of a cluster's present plan stand, and what may be asked of them."""

from edgewright.domain.cluster import StepName, Wanted
from edgewright.domain.events import EventKind
from edgewright.domain.lifecycle import is_skippable
from edgewright.domain.projection import FINISHED, HELD_UP, PlanKind, Residue, StepRecord
from workflows.publication import Publication


class StepRecords:
    """Base of ``StepLane``: a record for each step, in the order of the plan; and what a deletion has left behind."""

    def __init__(
        self, publication: Publication, plan: str, records: tuple[StepRecord, ...], residue: tuple[Residue, ...]
    ) -> None:
        self._publication = publication
        self.plan = plan
        self.records = {record.name: record for record in records}
        self.residue = list(residue)

    @property
    def current(self) -> StepName | None:
        """The step that is running or waited for, or None."""
        return next((name for name, record in self.records.items() if record.state not in FINISHED), None)

    def finished(self) -> frozenset[StepName]:
        return frozenset(name for name, record in self.records.items() if record.state in FINISHED)

    def can_retry(self, step: StepName) -> bool:
        record = self.records.get(step)
        return record is not None and record.state in HELD_UP

    def can_skip(self, step: StepName) -> bool:
        record = self.records.get(step)
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
            self.records[step] = self.records[step].retry()
            self._publication.tell(
                EventKind.STEP_RETRIED, f"Step {step} is tried again.", actor=actor, step=step.value
            )


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
