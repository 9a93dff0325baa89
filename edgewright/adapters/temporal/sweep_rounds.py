"""The rounds of the sweep in Temporal's list of workflows: a few of them are enough."""

from datetime import UTC, datetime, timedelta

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from edgewright.messages import names

KEPT = 10
"""The newest rounds, for whoever wants to see what a round does. The page of the schedule links as many. Temporal
is slow to delete what closed within the last half minute; at a round every 30 s, all others are older."""
MOST_FORGOTTEN = 100
"""In one call: where rounds were not forgotten yet there are thousands."""
COMPLETED = f"WorkflowType = '{names.SWEEP_TYPE}' AND ExecutionStatus = 'Completed'"
"""A round that failed or was cut off stays for as long as the namespace keeps runs."""
ANSWERS = timedelta(seconds=5)


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
        listed = self._client.list_workflows(COMPLETED, limit=most, page_size=most, rpc_timeout=ANSWERS)
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
        await client.workflow_service.delete_workflow_execution(wish, timeout=ANSWERS)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:  # the list is a moment behind
            raise


_NEVER = datetime.max.replace(tzinfo=UTC)
