"""Telling a workflow that stands still from one that waits: by the newest events of its history."""

from uuid import UUID

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client

from edgewright.messages import names

FAILURES = 3
"""Workflow tasks that fail one after the other: once may be an accident; such a run is one that no worker reads."""
NEWEST_EVENTS = 60


async def tasks_only_fail(client: Client, cluster: UUID) -> bool:
    """Whether workers have failed at the newest tasks of the cluster's workflow, and completed none since.

    Temporal writes down the first failure of a task, and counts the later ones.

    Raises:
        temporalio.service.RPCError: also NOT_FOUND, where there is no workflow.
    """
    described = (await client.get_workflow_handle(names.workflow_id(cluster)).describe()).raw_description
    request = GetWorkflowExecutionHistoryReverseRequest(
        namespace=client.namespace,
        execution=WorkflowExecution(
            workflow_id=names.workflow_id(cluster), run_id=described.workflow_execution_info.execution.run_id
        ),
        maximum_page_size=NEWEST_EVENTS,
    )
    newest = await client.workflow_service.get_workflow_execution_history_reverse(request)
    written = 0
    for event in newest.history.events:
        if event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED:
            break
        written += event.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED
    counted = max(0, described.pending_workflow_task.attempt - 1)
    return written > 0 and written + counted > FAILURES
