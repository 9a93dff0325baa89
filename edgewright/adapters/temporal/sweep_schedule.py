"""The schedule that starts the sweep: made anew at each start, and made again when somebody has deleted it."""

from contextlib import suppress
from datetime import timedelta

from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleHandle,
    ScheduleIntervalSpec,
    ScheduleOverlapPolicy,
    SchedulePolicy,
    ScheduleSpec,
    ScheduleUpdate,
    ScheduleUpdateInput,
)
from temporalio.service import RPCError, RPCStatusCode

from edgewright.messages import names

SCHEDULE_ANSWERS = timedelta(seconds=2)
"""How long a schedule may need to say whether it is paused; one that works needs some milliseconds."""

PATIENCE = timedelta(seconds=5)
"""Of who only wants to know whether it is paused, and has limits of their own."""


async def renew_schedule(client: Client, every: timedelta) -> None:
    """Makes the schedule anew each time: after weeks in which no server ran, the old one may never come to itself
    again (docs/adr/0013). One that somebody has paused makes up for nothing: it stays, and stays so."""
    schedule = _schedule(every)

    async def renew(present: ScheduleUpdateInput) -> ScheduleUpdate:
        schedule.state = present.description.schedule.state
        return ScheduleUpdate(schedule=schedule)

    handle = client.get_schedule_handle(names.SWEEP_SCHEDULE)
    if await _is_paused(handle):
        await handle.update(renew)
        return
    try:
        await handle.delete()
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
    with suppress(ScheduleAlreadyRunningError):  # somebody else has just made it
        await client.create_schedule(names.SWEEP_SCHEDULE, schedule)


async def restore_schedule(client: Client, every: timedelta) -> bool:
    """Makes the schedule if there is none; whether it did.

    Raises:
        RPCError: Temporal does not answer.
    """
    try:
        await client.get_schedule_handle(names.SWEEP_SCHEDULE).describe(rpc_timeout=SCHEDULE_ANSWERS)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
    else:
        return False
    try:
        await client.create_schedule(names.SWEEP_SCHEDULE, _schedule(every))
    except ScheduleAlreadyRunningError:
        return False
    return True


async def is_paused(client: Client) -> bool:
    """Whether somebody has paused the schedule; one that is not there is not.

    Raises:
        RPCError: Temporal does not answer.
    """
    try:
        described = await client.get_schedule_handle(names.SWEEP_SCHEDULE).describe(rpc_timeout=PATIENCE)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
        return False
    return described.schedule.state.paused


def _schedule(every: timedelta) -> Schedule:
    return Schedule(
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


async def _is_paused(handle: ScheduleHandle) -> bool:
    """Whether the schedule says so; one that is not there, or says nothing, is not."""
    try:
        return (await handle.describe(rpc_timeout=SCHEDULE_ANSWERS)).schedule.state.paused
    except RPCError:
        return False
