"""Telling a workflow that stands still from one that waits: by the newest events of its history."""

from collections.abc import AsyncIterator
from uuid import UUID

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType, TimeoutType
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client

from edgewright.messages import names

FAILURES = 3
"""Workflow tasks that fail one after the other: once may be an accident; such a run is one that no worker reads."""
PAGE = 1000
MOST_PAGES = 12
"""More than a run can have of signals, which Temporal limits to 10,000."""
FAILED = EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
TIMED_OUT = EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT
COMPLETED = EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED


async def tasks_only_fail(client: Client, cluster: UUID) -> bool:
    """Whether workers have failed at the newest tasks of the cluster's workflow, or run out of time, and completed
    none since, however many signals came meanwhile.

    Temporal writes down the first failure of a task, and counts the later ones until a signal comes.

    Raises:
        temporalio.service.RPCError: also NOT_FOUND, where there is no workflow.
    """
    described = (await client.get_workflow_handle(names.workflow_id(cluster)).describe()).raw_description
    if not described.HasField("pending_workflow_task"):  # one that has failed is pending until it does not
        return False
    counted = max(0, described.pending_workflow_task.attempt - 1)
    written = 0
    async for event in _newest_first(client, cluster, described.workflow_execution_info.execution.run_id):
        if event.event_type == COMPLETED:
            break
        written += _is_failure(event)
        if written and written + counted > FAILURES:
            return True
    return False


def _is_failure(event: HistoryEvent) -> bool:
    """A task that waited for the worker that has its workflow in memory, and then for any, was not tried."""
    if event.event_type == TIMED_OUT:
        return event.workflow_task_timed_out_event_attributes.timeout_type == TimeoutType.TIMEOUT_TYPE_START_TO_CLOSE
    return event.event_type == FAILED


async def _newest_first(client: Client, cluster: UUID, run: str) -> AsyncIterator[HistoryEvent]:
    request = GetWorkflowExecutionHistoryReverseRequest(
        namespace=client.namespace,
        execution=WorkflowExecution(workflow_id=names.workflow_id(cluster), run_id=run),
        maximum_page_size=PAGE,
    )
    for _ in range(MOST_PAGES):
        page = await client.workflow_service.get_workflow_execution_history_reverse(request)
        for event in page.history.events:
            yield event
        if not page.next_page_token:
            return
        request.next_page_token = page.next_page_token
