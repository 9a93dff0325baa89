"""The Temporal client, with the settings that were measured to be worth having.

Every message that it sends to a workflow says which request, and which span, it comes from.
"""

from typing import Any

from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from structlog.contextvars import get_contextvars
from temporalio.client import (
    Client,
    Interceptor,
    OutboundInterceptor,
    SignalWorkflowInput,
    StartWorkflowInput,
    StartWorkflowUpdateInput,
    WorkflowHandle,
    WorkflowUpdateHandle,
)
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.runtime import Runtime
from temporalio.service import GrpcCompression, RPCError

from edgewright.adapters.tracing import TRACEPARENT
from edgewright.messages.cause import Cause, header_of
from edgewright.ports.fleet import FleetUnavailable

_PROPAGATOR = TraceContextTextMapPropagator()


async def connect(address: str, namespace: str, *, lazy: bool = False, runtime: Runtime | None = None) -> Client:
    """Connects to a Temporal server.

    Args:
        address: ``host:port``.
        lazy: connect at the first call; the gateway starts while Temporal is away.

    Raises:
        FleetUnavailable: the server does not answer (never when lazy).
    """
    try:
        return await Client.connect(
            address,
            namespace=namespace,
            data_converter=pydantic_data_converter,
            grpc_compression=GrpcCompression.NONE,
            lazy=lazy,
            interceptors=[ClientCauseInterceptor()],
            runtime=runtime,
        )
    except (RPCError, RuntimeError) as error:
        raise FleetUnavailable(
            f"Temporal does not answer at {address}.",
            hint="Start it with `edgewright up`, or set EDGEWRIGHT_TEMPORAL_ADDRESS.",
            retry_after=2.0,
        ) from error


class ClientCauseInterceptor(Interceptor):
    """Adds the header with the cause to starts, signals and updates."""

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
