"""Steps that follow each other, run in one trip through Temporal's queue: the quick way when all goes well.

Those of a new cluster come with its first reading.
"""

import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

import structlog
from opentelemetry.trace import Tracer
from temporalio import activity

from edgewright.domain.cluster import Desired, Fence, StepName
from edgewright.domain.lifecycle import plan_for, run_from
from edgewright.domain.projection import Done
from edgewright.messages.steps import (
    Beginning,
    FinishedStep,
    Reading,
    ReadWanted,
    StepInput,
    StepResult,
    StepsInput,
    StepsResult,
)

log = structlog.get_logger("edgewright.activities")

Step = Callable[[StepInput], Coroutine[Any, Any, StepResult]]
Read = Callable[[ReadWanted], Coroutine[Any, Any, Reading]]


class StepChainActivities:
    """Runs steps that follow each other. Each is seen as if it were run alone.

    Args:
        steps: the activity of each step that may be run with others.
        read: the activity that reads what is wanted.
    """

    def __init__(self, steps: Mapping[StepName, Step], read: Read, tracer: Tracer) -> None:
        self.steps = dict(steps)
        self._read = read
        self._tracer = tracer

    @activity.defn(name="run_steps")
    async def run_steps(self, wish: StepsInput) -> StepsResult:
        """Runs steps in order as far as they go well.

        What does not go well is no failure here: the workflow tries that step alone, and tells why it fails.
        """
        return StepsResult(finished=await self._run(wish.steps, wish.fence))

    @activity.defn(name="read_and_commission")
    async def read_and_commission(self, question: ReadWanted) -> Beginning:
        """Reads what is wanted; of a cluster of which nothing was ever published, runs the steps that are due.

        They are those that the workflow would ask for with this reading. Hardware that was given up before anything
        was published has other steps first, and is left to the workflow.
        """
        reading = await self._read(question)
        wanted = reading.wanted
        if wanted is None or reading.seed or wanted.desired is not Desired.PRESENT or wanted.generation > 1:
            return Beginning(reading=reading)
        plan = plan_for(wanted, Done())
        steps = run_from(plan, plan.steps[0], paused=wanted.paused)
        fence = Fence(cluster=wanted.uuid, generation=wanted.generation, change=wanted.change)
        return Beginning(reading=reading, fence=fence, finished=await self._run(steps, fence))

    async def _run(self, steps: Sequence[StepName], fence: Fence) -> tuple[FinishedStep, ...]:
        finished: list[FinishedStep] = []
        for step in steps:
            began = time.monotonic()
            try:
                with self._tracer.start_as_current_span(
                    f"step {step}", record_exception=False, set_status_on_exception=False
                ):
                    result = await self.steps[step](StepInput(fence=fence, step=step))
            except Exception as error:  # noqa: BLE001 - whatever it is, the attempt alone meets it and tells of it
                log.info("step", step=step.value, outcome=type(error).__name__)
                break
            seconds = time.monotonic() - began
            log.info("step", step=step.value, outcome="done", milliseconds=round(seconds * 1000, 1))
            finished.append(FinishedStep(step=step, result=result, seconds=round(seconds, 3)))
        return tuple(finished)
