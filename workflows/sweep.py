"""The sweep: a Schedule starts it regularly, and it finds whatever the nudges missed."""

from temporalio import workflow
from temporalio.exceptions import ActivityError

from edgewright.messages.names import SWEEP_TYPE
from edgewright.messages.sweep import SweepResult
from workflows import policies

PARTS = ("sweep_expire", "sweep_nudge", "sweep_upkeep")
NOTIFY = "sweep_notify"
"""After ``sweep_expire``, so that expired leases are notified at once."""


@workflow.defn(name=SWEEP_TYPE)
class Sweep:
    """One round of the sweep. If a part fails, the others still run, and the next round tries again."""

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
        """Returns the parts of the round. A round that an older worker started continues without notifications."""
        first, *others = PARTS
        return (first, NOTIFY, *others) if workflow.patched("notifications") else PARTS
