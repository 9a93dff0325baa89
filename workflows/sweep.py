"""The sweep: a Schedule starts it again and again; whatever a nudge has missed, it finds."""

from temporalio import workflow
from temporalio.exceptions import ActivityError

from edgewright.messages.names import SWEEP_TYPE
from edgewright.messages.sweep import SweepResult
from workflows import policies

PARTS = ("sweep_expire", "sweep_nudge", "sweep_upkeep")
NOTIFY = "sweep_notify"
"""After ``sweep_expire``: what that has found is told at once."""


@workflow.defn(name=SWEEP_TYPE)
class Sweep:
    """One round. A part that fails does not keep the others from running; the next round tries again."""

    @workflow.run
    async def run(self) -> SweepResult:
        total = SweepResult()
        for part in self._parts():
            try:
                result: SweepResult = await workflow.execute_activity(
                    part, result_type=SweepResult, **policies.SWEEP_STEP
                )
            except ActivityError as error:
                workflow.logger.warning("%s failed: %s", part, error.cause)
                continue
            total = SweepResult(
                **{name: getattr(total, name) + getattr(result, name) for name in SweepResult.model_fields}
            )
        return total

    def _parts(self) -> tuple[str, ...]:
        """A round that an older worker has begun goes on without notifications."""
        first, *others = PARTS
        return (first, NOTIFY, *others) if workflow.patched("notifications") else PARTS
