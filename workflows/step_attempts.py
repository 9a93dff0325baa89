"""One attempt at a step, or at several steps in one activity."""

import asyncio
from datetime import datetime
from uuid import UUID

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from edgewright.domain.cluster import Fence, StepName
from edgewright.messages.steps import (
    Beginning,
    FinishedStep,
    ReadWanted,
    StepInput,
    StepResult,
    StepsInput,
    StepsResult,
)
from workflows import policies

TOLD_WHILE_RUNNING = "tell of attempts that take long"
"""Patch. Earlier runs publish a first attempt only when it has ended."""


class Attempt:
    """An attempt under way.

    Args:
        task: the running activity; a beginning if it came with the first reading.
        steps: the steps to finish, in order.
        circumstances: the circumstances at its start.
    """

    def __init__(
        self,
        task: "asyncio.Task[StepsResult] | asyncio.Task[Beginning]",
        steps: tuple[StepName, ...],
        fence: Fence,
        *,
        since: datetime,
        circumstances: tuple[object, ...],
    ) -> None:
        self._task = task
        self.steps = steps
        self._fence = fence
        self.since = since
        self.circumstances = circumstances

    @property
    def ended(self) -> bool:
        return self._task.done()

    @property
    def hangs(self) -> bool:
        """Whether it runs longer than a successful one, so that people want to see its start time."""
        if self.ended or workflow.now() - self.since < policies.LONG_ATTEMPT:
            return False
        return workflow.patched(TOLD_WHILE_RUNNING)

    def serves(self, step: StepName, fence: Fence) -> bool:
        """Whether it runs this step, for the present wish."""
        return (self.steps[0], self._fence) == (step, fence)

    def finished(self) -> tuple[FinishedStep, ...]:
        """Returns the finished steps of an ended attempt; none if it served another wish.

        Raises:
            ActivityError: it failed.
        """
        result = self._task.result()
        return () if isinstance(result, Beginning) and result.fence != self._fence else result.finished

    def forget(self) -> None:
        """Cancels the attempt. If it continues anyway, its fence refuses it."""
        forget(self._task)


def forget(task: "asyncio.Task[StepsResult] | asyncio.Task[Beginning]") -> None:
    """Cancels an activity and ignores its result."""
    task.cancel()
    task.add_done_callback(_heard)


def _heard(task: "asyncio.Task[StepsResult] | asyncio.Task[Beginning]") -> None:
    """Retrieves the result of a dropped attempt, which would otherwise be logged as an unhandled error."""
    if not task.cancelled():
        task.exception()


async def attempt_alone(step: StepName, fence: Fence, *, number: int) -> StepsResult:
    """Runs the activity of one step.

    Raises:
        ActivityError: it failed, after the quick retries of its policy.
    """
    result: StepResult = await workflow.execute_activity(
        step.value,
        StepInput(fence=fence, step=step),
        result_type=StepResult,
        summary=f"round {number}",
        **policies.step_policy(step),
    )
    return StepsResult(finished=(FinishedStep(step=step, result=result),))


async def attempt_together(steps: tuple[StepName, ...], fence: Fence) -> StepsResult:
    """Runs several steps in one activity; returns fewer if one failed, or if the worker died."""
    try:
        result: StepsResult = await workflow.execute_activity(
            "run_steps",
            StepsInput(fence=fence, steps=steps),
            result_type=StepsResult,
            summary=", ".join(steps),
            **policies.TOGETHER,
        )
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise
        return StepsResult()
    return result


async def begin(cluster: UUID) -> Beginning:
    """Reads what is wanted for the first time and, if the cluster is new, runs its steps in the same activity.

    Returns an empty beginning if the database is unavailable, or if the worker died.
    """
    try:
        beginning: Beginning = await workflow.execute_activity(
            "read_and_commission",
            ReadWanted(cluster=cluster, seed=True),
            result_type=Beginning,
            summary="first reading, and the steps of a new cluster",
            **policies.TOGETHER,
        )
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise
        return Beginning()
    return beginning
