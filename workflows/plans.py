"""Leads a cluster from what is done to what is wanted, one plan after the other."""

from temporalio import workflow

from edgewright.domain.cluster import Wanted
from edgewright.domain.lifecycle import Plan, finish, next_step, plan_for
from edgewright.domain.projection import Done, PlanKind
from workflows.step_lane import StepLane

EARLY_MOVE = "withdraw secrets after an early move"
"""Patch. Earlier runs do not remove secrets if hardware was given up before it was commissioned."""


class Plans:
    """What is done, and the plan for the rest.

    Args:
        chained: whether a plan without steps may follow a finished one without a new reading.
    """

    def __init__(self, steps: StepLane, done: Done, *, chained: bool) -> None:
        self._steps = steps
        self.done = done
        self._chained = chained

    def take(self, wanted: Wanted) -> Plan:
        """Switches to the plan for what is wanted now."""
        plan = self._plan(wanted)
        self._steps.take(plan)
        return plan

    def advance(self, plan: Plan, wanted: Wanted, *, read_again: bool) -> tuple[Wanted, bool]:
        """Runs the due steps of a plan, and records when it is done.

        Args:
            read_again: whether to read again after one step.

        Returns:
            What is wanted, closed if the cluster is deleted now; and whether to read it again.
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
        """Plans for secrets of earlier hardware even if its commissioning is not known to be done: the workflow that
        knew may be lost, or the cluster was moved that early."""
        done = self.done
        if wanted.generation > 1 and not done.generation and workflow.patched(EARLY_MOVE):
            done = done.model_copy(update={"generation": wanted.generation - 1})
        return plan_for(wanted, done)
