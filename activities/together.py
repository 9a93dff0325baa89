"""Steps that follow each other, run in one trip through Temporal's queue: the quick way when all goes well."""

import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import structlog
from opentelemetry.trace import Tracer
from temporalio import activity

from edgewright.domain.cluster import StepName
from edgewright.messages.steps import FinishedStep, StepInput, StepResult, StepsInput, StepsResult

log = structlog.get_logger("edgewright.activities")

Step = Callable[[StepInput], Coroutine[Any, Any, StepResult]]


class TogetherActivities:
    """``steps``: the activity of each step that may be run with others. Each is seen as if it were run alone."""

    def __init__(self, steps: Mapping[StepName, Step], tracer: Tracer) -> None:
        self.steps = dict(steps)
        self._tracer = tracer

    @activity.defn(name="run_steps")
    async def run_steps(self, wish: StepsInput) -> StepsResult:
        """Runs steps in order as far as they go well.

        What does not go well is no failure here: the workflow tries that step alone, and tells why it fails.
        """
        finished: list[FinishedStep] = []
        for step in wish.steps:
            began = time.monotonic()
            try:
                with self._tracer.start_as_current_span(
                    f"step {step}", record_exception=False, set_status_on_exception=False
                ):
                    result = await self.steps[step](StepInput(fence=wish.fence, step=step))
            except Exception as error:  # noqa: BLE001 - whatever it is, the attempt alone meets it and tells of it
                log.info("step", step=step.value, outcome=type(error).__name__)
                break
            seconds = time.monotonic() - began
            log.info("step", step=step.value, outcome="done", milliseconds=round(seconds * 1000, 1))
            finished.append(FinishedStep(step=step, result=result, seconds=round(seconds, 3)))
        return StepsResult(finished=tuple(finished))
