"""Leads a cluster from what is done to what is wanted, one plan after the other."""

from temporalio import workflow

from edgewright.domain.cluster import Wanted
from edgewright.domain.lifecycle import Plan, finish, next_step, plan_for
from edgewright.domain.projection import Done, PlanKind
from workflows.step_lane import StepLane

EARLY_MOVE = "withdraw secrets after an early move"
"""Patch. Runs that began before it take no secrets away when hardware was given up before it was commissioned."""


class Plans:
    """What is done, and the plan for what is not.

    Args:
        chained: whether a plan without steps follows one that is done without a new reading.
    """

    def __init__(self, steps: StepLane, done: Done, *, chained: bool) -> None:
        self._steps = steps
        self.done = done
        self._chained = chained

    def take(self, wanted: Wanted) -> Plan:
        """Goes over to the plan that what is wanted asks for now."""
        plan = self._plan(wanted)
        self._steps.take(plan)
        return plan

    def advance(self, plan: Plan, wanted: Wanted, *, read_again: bool) -> tuple[Wanted, bool]:
        """Runs what is due of a plan, and notes when it is done.

        Args:
            read_again: whether what is wanted is to be read again before more than one thing is done.

        Returns:
            What is wanted, closed if the cluster is deleted now; and whether it is to be read again.
        """
        while self._steps.advance(plan, wanted):
            if next_step(plan, self._steps.records.finished()) is None and plan.steps:
                self._note_done(plan, wanted)
                if plan.kind is PlanKind.DELETE:
                    wanted = wanted.model_copy(update={"closed": True})
                elif self._chained and not (following := self._plan(wanted)).steps:
                    self._steps.take(following)
                    plan = following
                else:
                    read_again = True  # a plan with more steps begins with a new reading
            if self._steps.refused:
                self._steps.refused = False
                read_again = True
            if read_again or wanted.closed:
                break
        return wanted, read_again

    def _note_done(self, plan: Plan, wanted: Wanted) -> None:
        self.done = finish(plan, wanted, self.done, self._steps.rendered_digest)
        self._steps.drop()

    def _plan(self, wanted: Wanted) -> Plan:
        """Secrets may be there as well from hardware given up before its commissioning was known to be done: the
        workflow that knew is lost, or the cluster was moved so early."""
        done = self.done
        if wanted.generation > 1 and not done.generation and workflow.patched(EARLY_MOVE):
            done = done.model_copy(update={"generation": wanted.generation - 1})
        return plan_for(wanted, done)
