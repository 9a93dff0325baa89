"""One attempt at one step, or at several in one go. Each returns the steps that it has finished."""

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
    """Runs several steps in one activity; fewer come back if one did not go well, or if its worker died."""
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

    Nothing of it comes back if the database is out of reach, or if the worker died.
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
