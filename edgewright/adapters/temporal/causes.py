"""Every message to a workflow says which request, and which span, it comes from."""

from typing import Any

from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from structlog.contextvars import get_contextvars
from temporalio.client import (
    Interceptor,
    OutboundInterceptor,
    SignalWorkflowInput,
    StartWorkflowInput,
    StartWorkflowUpdateInput,
    WorkflowHandle,
    WorkflowUpdateHandle,
)

from edgewright.adapters.tracing import TRACEPARENT
from edgewright.messages.cause import Cause, header_of

_PROPAGATOR = TraceContextTextMapPropagator()


class ClientCauseInterceptor(Interceptor):
    """Adds the header to starts, signals and updates."""

    def intercept_client(self, next: OutboundInterceptor) -> OutboundInterceptor:  # noqa: A002 - the SDK's name
        return _ClientOutbound(next)


class _ClientOutbound(OutboundInterceptor):
    async def start_workflow(self, input: StartWorkflowInput) -> WorkflowHandle[Any, Any]:  # noqa: A002 - the SDK's name
        input.headers = {**input.headers, **header_of(present_cause())}
        return await super().start_workflow(input)

    async def signal_workflow(self, input: SignalWorkflowInput) -> None:  # noqa: A002 - the SDK's name
        input.headers = {**input.headers, **header_of(present_cause())}
        await super().signal_workflow(input)

    async def start_workflow_update(self, input: StartWorkflowUpdateInput) -> WorkflowUpdateHandle[Any]:  # noqa: A002 - the SDK's name
        input.headers = {**input.headers, **header_of(present_cause())}
        return await super().start_workflow_update(input)


def present_cause() -> Cause:
    """What this task works for: the request ID that its log lines bear, and the span that it is in."""
    carrier: dict[str, str] = {}
    _PROPAGATOR.inject(carrier)
    request = get_contextvars().get("request_id")
    return Cause(request=str(request) if request else None, traceparent=carrier.get(TRACEPARENT))
