"""One attempt at one step, or at several in one go. Each returns the steps that it has finished."""

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from edgewright.domain.cluster import Fence, StepName
from edgewright.messages.steps import FinishedStep, StepInput, StepResult, StepsInput, StepsResult
from workflows import policies


async def attempt_alone(step: StepName, fence: Fence, *, number: int) -> tuple[FinishedStep, ...]:
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
    return (FinishedStep(step=step, result=result),)


async def attempt_together(steps: tuple[StepName, ...], fence: Fence) -> tuple[FinishedStep, ...]:
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
        return ()
    return result.finished
