"""What surrounds every activity: it is seen, beats while it runs, and fails as the workflows understand."""

import asyncio
import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import structlog
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer
from structlog.contextvars import bound_contextvars
from temporalio import activity
from temporalio.exceptions import ApplicationError, CancelledError, FailureError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from edgewright.adapters.tracing import span_before
from edgewright.errors import EdgewrightError, Waiting
from edgewright.messages.cause import Cause, cause_in
from edgewright.messages.steps import StepFailure

log = structlog.get_logger("edgewright.activities")

QUICK_RETRY = 2.0
"""Seconds: what waits for longer is not retried by the server unseen, but by the loop, which says so."""
HEARTBEAT_INTERVAL = 1.0
"""Seconds between two signs of life; a quarter of the time-out in workflows/policies.py."""
_OF_CLUSTER = re.compile(r"cluster-([0-9a-f-]{36})")
_ROUTINE = frozenset({"read_wanted", "publish", "sweep_expire", "sweep_nudge", "sweep_upkeep", "sweep_notify"})
"""Activities that happen all the time and change nothing that anybody asked for: logged at DEBUG."""


class ObservationInterceptor(Interceptor):
    """The outermost one, so that it sees how an activity ends."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002 - the SDK's name
        return _ObservationInbound(next, self._tracer)


class _ObservationInbound(ActivityInboundInterceptor):
    def __init__(self, following: ActivityInboundInterceptor, tracer: Tracer) -> None:
        super().__init__(following)
        self._tracer = tracer

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - the SDK's name
        info, cause = activity.info(), cause_in(input.headers)
        began, outcome = time.perf_counter(), "done"
        with bound_contextvars(**_about(info, cause)), self._span(info, cause) as span:
            try:
                return await super().execute_activity(input)
            except BaseException as error:
                outcome = _code(error)
                span.set_status(StatusCode.ERROR, outcome)
                raise
            finally:
                level = logging.DEBUG if info.activity_type in _ROUTINE and outcome == "done" else logging.INFO
                milliseconds = round((time.perf_counter() - began) * 1000, 1)
                log.log(level, "activity", activity=info.activity_type, outcome=outcome, milliseconds=milliseconds)

    @contextmanager
    def _span(self, info: activity.Info, cause: Cause) -> Iterator[Span]:
        attributes: dict[str, str | int] = {
            "temporal.workflow_id": info.workflow_id or "",
            "temporal.run_id": info.workflow_run_id or "",
            "temporal.task_queue": info.task_queue,
            "temporal.attempt": info.attempt,
            **({"edgewright.request_id": cause.request} if cause.request else {}),
        }
        with self._tracer.start_as_current_span(
            f"activity {info.activity_type}",
            context=span_before(cause.traceparent),
            kind=SpanKind.CONSUMER,
            attributes=attributes,
            record_exception=False,  # the text of an exception may hold anything
            set_status_on_exception=False,
        ) as span:
            yield span


def _about(info: activity.Info, cause: Cause) -> dict[str, str | int]:
    """What each line says that is logged on behalf of an activity."""
    about: dict[str, str | int] = {"workflow_id": info.workflow_id or "", "attempt": info.attempt}
    if match := _OF_CLUSTER.fullmatch(info.workflow_id or ""):
        about["cluster"] = match[1]
    if cause.request:
        about["request_id"] = cause.request
    return about


def _code(error: BaseException) -> str:
    """What an error is called, without its text."""
    return (error.type if isinstance(error, ApplicationError) else None) or type(error).__name__


class FailureInterceptor(Interceptor):
    """Maps Edgewright's errors onto Temporal, the only place that does.

    Waiting is retried (not before ``retry_after``); Refused and Stalled are not; a bug is, a few times.

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


class HeartbeatInterceptor(Interceptor):
    """Beats while an activity runs, so that the death of a worker is noticed within seconds.

    It is also how an activity hears that it was cancelled.
    """

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:  # noqa: A002 - the SDK's name
        return _HeartbeatInbound(next)


class _HeartbeatInbound(ActivityInboundInterceptor):
    async def execute_activity(self, input: ExecuteActivityInput) -> Any:  # noqa: A002 - the SDK's name
        beating = asyncio.create_task(_beat())
        try:
            return await self.next.execute_activity(input)
        finally:
            beating.cancel()


async def _beat() -> None:
    while True:
        await asyncio.sleep(HEARTBEAT_INTERVAL)
        activity.heartbeat()
