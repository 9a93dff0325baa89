"""Reads the reason for an activity's failure."""

from temporalio.exceptions import ActivityError, ApplicationError, CancelledError
from temporalio.exceptions import TimeoutError as ActivityTimeoutError

from edgewright.messages.steps import StepFailure

SUPERSEDED = "superseded"
UNEXPECTED = "unexpected"
"""A bug, or an unexpected failure, after a few tries."""


def failure_of(error: ActivityError) -> StepFailure:
    """Returns why an activity failed; a time-out or a lost worker counts as temporary."""
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
    """Whether a fence refused the activity, so that the row must be read again."""
    return failure_of(error).code == SUPERSEDED
