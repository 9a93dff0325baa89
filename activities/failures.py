"""The single mapping of Edgewright's errors onto Temporal, as an interceptor around every activity."""

from datetime import timedelta
from typing import Any

import structlog
from temporalio import activity
from temporalio.exceptions import ApplicationError, CancelledError, FailureError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from edgewright.errors import EdgewrightError, Waiting
from edgewright.messages.steps import StepFailure

log = structlog.get_logger("edgewright.activities")

QUICK_RETRY = 2.0
"""Seconds: what waits for longer is not retried by the server unseen, but by the loop, which says so."""


class FailureInterceptor(Interceptor):
    """Waiting is retried (not before ``retry_after``); Refused and Stalled are not; a bug is, a few times.

    An unexpected exception reaches Temporal by its type alone: its text could hold anything.
    """

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002 - the SDK's name
        return _FailureInbound(next)


class _FailureInbound(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - the SDK's name
        name = activity.info().activity_type
        try:
            return await self.next.execute_activity(input)
        except (FailureError, CancelledError):
            raise
        except EdgewrightError as error:
            raise as_failure(error) from None
        except Exception as error:  # the boundary: nothing unexpected may carry its text outside
            log.exception("activity_bug", activity=name, workflow=activity.info().workflow_id)
            sentence = f"{type(error).__name__} in {name}; the worker's log has the rest."
            failure = StepFailure(code="unexpected", sentence=sentence)
            raise ApplicationError(sentence, failure.model_dump(mode="json"), type="unexpected") from None


def as_failure(error: EdgewrightError) -> ApplicationError:
    """One of our errors as Temporal carries it."""
    waiting = isinstance(error, Waiting)
    retry_after = error.retry_after if isinstance(error, Waiting) else None
    soon = retry_after is not None and retry_after <= QUICK_RETRY
    failure = StepFailure(
        code=error.code,
        sentence=error.detail,
        hint=error.hint or "",
        where=error.where or "",
        permanent=not waiting,
        retry_after=retry_after,
    )
    return ApplicationError(
        error.detail,
        failure.model_dump(mode="json"),
        type=error.code,
        non_retryable=not soon,
        next_retry_delay=timedelta(seconds=retry_after) if retry_after and soon else None,
    )
