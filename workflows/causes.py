"""A workflow passes the cause of its newest message on to the activities that it starts.

It does not pass on the cause of its start: a workflow lives for years, and a trace of all that time is of no use. The
header is never read here, so the workflow cannot depend on it, and histories without one replay unchanged.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.worker import (
    ExecuteWorkflowInput,
    HandleSignalInput,
    HandleUpdateInput,
    Interceptor,
    StartActivityInput,
    WorkflowInboundInterceptor,
    WorkflowInterceptorClassInput,
    WorkflowOutboundInterceptor,
)
from temporalio.workflow import ActivityHandle

from edgewright.messages.names import HEADER_CAUSE
from workflows import policies


class WorkflowCauseInterceptor(Interceptor):
    """For the worker that runs workflows."""

    def workflow_interceptor_class(self, input: WorkflowInterceptorClassInput) -> type[WorkflowInboundInterceptor]:  # noqa: A002 - the SDK's name
        return _CauseInbound


class _Newest:
    """The header of the newest message that had one. The sweep's nudges have none, so they do not end a trace."""

    def __init__(self) -> None:
        self._header: Mapping[str, Payload] = {}
        self._came_at: datetime | None = None

    def take(self, headers: Mapping[str, Payload]) -> None:
        if HEADER_CAUSE in headers:
            self._header, self._came_at = {HEADER_CAUSE: headers[HEADER_CAUSE]}, workflow.now()

    def header(self) -> Mapping[str, Payload]:
        """Returns the header for an activity that starts now."""
        fresh = self._came_at is not None and workflow.now() - self._came_at <= policies.LONGEST_EFFECT
        return self._header if fresh else {}


class _CauseInbound(WorkflowInboundInterceptor):
    def init(self, outbound: WorkflowOutboundInterceptor) -> None:
        self._newest = _Newest()
        super().init(_CauseOutbound(outbound, self._newest))

    async def execute_workflow(self, input: ExecuteWorkflowInput) -> Any:  # noqa: A002 - the SDK's name
        self._newest.take(input.headers)
        return await super().execute_workflow(input)

    async def handle_signal(self, input: HandleSignalInput) -> None:  # noqa: A002 - the SDK's name
        self._newest.take(input.headers)
        await super().handle_signal(input)

    async def handle_update_handler(self, input: HandleUpdateInput) -> Any:  # noqa: A002 - the SDK's name
        self._newest.take(input.headers)
        return await super().handle_update_handler(input)


class _CauseOutbound(WorkflowOutboundInterceptor):
    def __init__(self, outbound: WorkflowOutboundInterceptor, newest: _Newest) -> None:
        super().__init__(outbound)
        self._newest = newest

    def start_activity(self, input: StartActivityInput) -> ActivityHandle[Any]:  # noqa: A002 - the SDK's name
        input.headers = {**input.headers, **self._newest.header()}
        return super().start_activity(input)
