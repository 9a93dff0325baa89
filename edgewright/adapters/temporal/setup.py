"""What a Temporal namespace needs before clusters can live in it. Everything here may run again and again."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from google.protobuf.duration_pb2 import Duration
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest, RegisterNamespaceRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from edgewright.adapters.temporal.fleet import unavailable
from edgewright.adapters.temporal.nudging import nudge_all
from edgewright.adapters.temporal.sweep_schedule import renew_schedule
from edgewright.messages import names
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.fleet import Fleet

RETENTION = timedelta(days=30)
"""How long a namespace that we make keeps closed runs; the audit log keeps what matters for good."""
SPREADING_SECONDS = 60.0
"""How long a server may need to tell all its parts of a new namespace or attribute; two seconds are usual."""

TYPES = {
    "Keyword": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    "KeywordList": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST,
    "Bool": IndexedValueType.INDEXED_VALUE_TYPE_BOOL,
}


async def prepare(client: Client, *, sweep_every: timedelta) -> None:
    """Makes the namespace if it is missing, its search attributes and the schedule of the sweep.

    A namespace that is there is taken as it is, its retention too.

    Raises:
        FleetUnavailable: Temporal does not answer.
    """
    try:
        await _ensure_namespace(client)
        await _register_search_attributes(client)
        await renew_schedule(client, sweep_every)
    except RPCError as error:
        raise unavailable(error) from error


async def _ensure_namespace(client: Client) -> None:
    async def described() -> None:
        await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=client.namespace))

    try:
        await described()
        return
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
    wanted = RegisterNamespaceRequest(namespace=client.namespace, workflow_execution_retention_period=Duration())
    wanted.workflow_execution_retention_period.FromTimedelta(RETENTION)
    try:
        await client.workflow_service.register_namespace(wanted)
    except RPCError as race:
        if race.status is not RPCStatusCode.ALREADY_EXISTS:
            raise
    await _until_known(described, RPCStatusCode.NOT_FOUND)


async def _until_known(asked: Callable[[], Awaitable[object]], unknown: RPCStatusCode) -> None:
    """Asks again while the answer is that a thing is unknown which has just been made."""
    until = asyncio.get_running_loop().time() + SPREADING_SECONDS
    while True:
        try:
            await asked()
            return
        except RPCError as error:
            if error.status is not unknown or asyncio.get_running_loop().time() > until:
                raise
        await asyncio.sleep(0.2)


async def _register_search_attributes(client: Client) -> None:
    listed = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace)
    )
    missing = {
        name: TYPES[kind] for name, kind in names.SEARCH_ATTRIBUTES.items() if name not in listed.custom_attributes
    }
    if not missing:
        return
    try:
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(namespace=client.namespace, search_attributes=missing)
        )
    except RPCError as error:
        if error.status is not RPCStatusCode.ALREADY_EXISTS:
            raise
    # Until then a workflow that bears one is refused.
    query = f"{next(iter(missing))} IS NULL"
    await _until_known(lambda: client.count_workflows(query), RPCStatusCode.INVALID_ARGUMENT)


async def rebuild(fleet: Fleet, directory: ClusterDirectory) -> int:
    """Starts the workflow of every cluster that has none; returns how many.

    After Temporal's file was lost this brings all of them back: each goes on from its last projection. One that
    cannot be started keeps no other from it; the sweep tries again.
    """
    wanted = set(await directory.open_clusters())
    if not wanted:
        return 0
    missing = wanted - await fleet.running()
    failed = await nudge_all(fleet, sorted(missing))
    return len(missing) - len(failed)
