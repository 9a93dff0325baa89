"""The schedule that starts the sweep, and the rounds that it has started.

The schedule is made anew at each start, and made again when somebody has deleted it. Of the rounds a few are enough
in Temporal's list of workflows.
"""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
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
"""For callers who only want to know whether it is paused, and have limits of their own."""

KEPT = 10
"""The newest rounds, for whoever wants to see what a round does. The page of the schedule links as many. Temporal
is slow to delete what closed within the last half minute; at a round every 30 s, all others are older."""
MOST_FORGOTTEN = 100
"""In one call: where rounds were not forgotten yet there are thousands."""
COMPLETED = f"WorkflowType = '{names.SWEEP_TYPE}' AND ExecutionStatus = 'Completed'"
"""A round that failed or was cut off stays for as long as the namespace keeps runs."""
_ROUNDS_ANSWER = timedelta(seconds=5)
"""For a page of the list, or for one deletion."""
_NEVER = datetime.max.replace(tzinfo=UTC)


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


class SweepRounds:
    """Deletes what is not needed in the list.

    Temporal deletes a run some seconds, at times minutes, after it was asked to. To ask again for the same run only
    adds to what it has to do, so the runs that were asked for are remembered while they are listed.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._asked: frozenset[str] = frozenset()

    async def forget(self) -> int:
        """Has completed rounds deleted except the newest; returns for how many it has asked.

        Raises:
            RPCError: Temporal does not answer, or forbids it.
        """
        most = KEPT + MOST_FORGOTTEN
        listed = self._client.list_workflows(COMPLETED, limit=most, page_size=most, rpc_timeout=_ROUNDS_ANSWER)
        rounds = sorted([each async for each in listed], key=lambda each: each.close_time or _NEVER, reverse=True)
        old = {each.run_id: each.id for each in rounds[KEPT:]}
        new = old.keys() - self._asked
        for run in new:
            await _delete(self._client, WorkflowExecution(workflow_id=old[run], run_id=run))
        self._asked = frozenset(old)
        return len(new)


async def _delete(client: Client, run: WorkflowExecution) -> None:
    wish = DeleteWorkflowExecutionRequest(namespace=client.namespace, workflow_execution=run)
    try:
        await client.workflow_service.delete_workflow_execution(wish, timeout=_ROUNDS_ANSWER)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:  # the list is a moment behind
            raise
