"""Reads what a failed activity says of itself."""

from temporalio.exceptions import ActivityError, ApplicationError, CancelledError
from temporalio.exceptions import TimeoutError as ActivityTimeoutError

from edgewright.messages.steps import StepFailure

SUPERSEDED = "superseded"
UNEXPECTED = "unexpected"
"""A bug, or something that the code has no words for; it was tried a few times."""


def failure_of(error: ActivityError) -> StepFailure:
    """The reason of an activity's failure; a time-out or a lost worker is one that passes."""
    cause = error.cause
    if isinstance(cause, ApplicationError):
        for detail in cause.details:
            if isinstance(detail, dict):
                return StepFailure.model_validate(detail)
        return StepFailure(code=cause.type or UNEXPECTED, sentence=cause.message, permanent=cause.non_retryable)
    if isinstance(cause, ActivityTimeoutError):
        return StepFailure(
            code="worker_silent", sentence="No worker finished it in time.", hint="See whether a worker runs."
        )
    if isinstance(cause, CancelledError):
        return StepFailure(code="cancelled", sentence="It was cancelled.")
    return StepFailure(code=UNEXPECTED, sentence="It failed for an unknown reason; see the worker's log.")


def superseded(error: ActivityError) -> bool:
    """Whether a fence refused it: the row has moved on and is to be read again."""
    return failure_of(error).code == SUPERSEDED
