"""What a Temporal namespace needs before clusters can live in it. Everything here may run again and again."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.service import RPCError, RPCStatusCode

from edgewright.adapters.temporal.fleet import unavailable
from edgewright.messages import names
from edgewright.ports.clusters import Clusters
from edgewright.ports.fleet import Fleet

NUDGES_AT_ONCE = 32

TYPES = {
    "Keyword": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD,
    "KeywordList": IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD_LIST,
    "Bool": IndexedValueType.INDEXED_VALUE_TYPE_BOOL,
}


async def prepare(client: Client, *, sweep_every: timedelta) -> None:
    """Registers the search attributes and the schedule of the sweep.

    Raises:
        FleetUnavailable: Temporal does not answer.
    """
    try:
        await _register_search_attributes(client)
        await _schedule_sweep(client, sweep_every)
    except RPCError as error:
        raise unavailable(error) from error


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


async def _schedule_sweep(client: Client, every: timedelta) -> None:
    schedule = Schedule(
        action=ScheduleActionStartWorkflow(
            names.SWEEP_TYPE,
            id="sweep",
            task_queue=names.CLUSTERS_QUEUE,
            execution_timeout=timedelta(minutes=30),
            static_summary="finds what nudges have missed",
        ),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=every)]),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP, catchup_window=timedelta(minutes=1)),
    )
    try:
        await client.create_schedule(names.SWEEP_SCHEDULE, schedule)
    except ScheduleAlreadyRunningError:

        async def renew(present: ScheduleUpdateInput) -> ScheduleUpdate:
            schedule.state = present.description.schedule.state
            return ScheduleUpdate(schedule=schedule)

        await client.get_schedule_handle(names.SWEEP_SCHEDULE).update(renew)


async def rebuild(fleet: Fleet, clusters: Clusters) -> int:
    """Starts the workflow of every cluster that has none; returns how many.

    After Temporal's file was lost this brings all of them back: each goes on from its last projection.
    """
    wanted = set(await clusters.open_clusters())
    if not wanted:
        return 0
    missing = wanted - await fleet.running()
    await nudge_all(fleet, sorted(missing))
    return len(missing)


async def nudge_all(fleet: Fleet, clusters: Sequence[UUID]) -> None:
    """Nudges many clusters, several at a time: one by one, ten thousand take longer than a start may.

    Raises:
        EdgewrightError: one could not be nudged; the others that were not are not any more.
    """
    left = iter(clusters)

    async def nudge_the_next() -> None:
        for cluster in left:
            await fleet.nudge(cluster, bulk=True)

    nudging = [asyncio.create_task(nudge_the_next()) for _ in range(NUDGES_AT_ONCE)]
    try:
        await asyncio.gather(*nudging)
    finally:
        for task in nudging:
            task.cancel()
