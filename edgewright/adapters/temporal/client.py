"""The Temporal client, with the settings that were measured to be worth having."""

from temporalio.client import Client
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.runtime import Runtime
from temporalio.service import GrpcCompression, RPCError

from edgewright.adapters.temporal.causes import ClientCauseInterceptor
from edgewright.ports.fleet import FleetUnavailable


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
