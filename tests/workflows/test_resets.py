"""`temporal workflow reset` gives a run its old messages once more. None of them is applied again."""

from uuid import UUID, uuid4

from centre import Centre, eventually
from cluster_states import is_told, kinds
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest

from edgewright.domain.wellknown import APP_CLUSTER_STATUS
from edgewright.messages import names


async def reset(centre: Centre, cluster: UUID) -> None:
    """Back to the first workflow task of the present run; signals and updates since then come again."""
    events = centre.handle(cluster).fetch_history_events()
    completed = [e.event_id async for e in events if e.event_type == EventType.EVENT_TYPE_WORKFLOW_TASK_COMPLETED]
    run = (await centre.handle(cluster).describe()).run_id
    request = ResetWorkflowExecutionRequest(
        namespace=centre.client.namespace,
        workflow_execution=WorkflowExecution(workflow_id=names.workflow_id(cluster), run_id=run or ""),
        reason="a test",
        workflow_task_finish_event_id=min(completed),
        request_id=str(uuid4()),
    )
    await centre.client.workflow_service.reset_workflow_execution(request)


async def hosts(centre: Centre, cluster: UUID) -> list[str]:
    entry = await centre.ports.entries.get(APP_CLUSTER_STATUS, cluster)
    return [host["hostname"] for host in entry.body["hosts"]] if entry else []


async def says(centre: Centre, cluster: UUID, name: str) -> None:
    """Sends a status by signal, and waits until it is recorded."""
    await centre.handle(cluster).signal(names.SIGNAL_EDGE_STATUS, {"hosts": [{"hostname": name}]})

    async def recorded() -> bool:
        return await hosts(centre, cluster) == [name]

    await eventually(recorded)


async def test_an_old_status_does_not_come_back_with_a_reset_and_a_new_one_is_taken(centre: Centre) -> None:
    cluster = await centre.create("reset")
    for name in ("first", "second", "first", "third"):
        await says(centre, cluster, name)
    await eventually(lambda: is_told(centre, cluster))
    await reset(centre, cluster)

    async def refused() -> bool:
        return (await kinds(centre, cluster)).count("edge_status.refused") == 4

    await eventually(refused)
    assert await hosts(centre, cluster) == ["third"]
    await says(centre, cluster, "fourth")


async def test_a_pause_that_has_ended_does_not_come_back_with_a_reset(centre: Centre) -> None:
    cluster = await centre.create("resumed")
    await centre.ports.fleet.pause(cluster, reason="shift change", actor="token:test")
    await centre.ports.fleet.resume(cluster, actor="token:test")
    await eventually(lambda: is_told(centre, cluster))
    await reset(centre, cluster)
    await says(centre, cluster, "awake")
    assert not (await centre.row(cluster)).paused
    assert (await kinds(centre, cluster)).count("cluster.paused") == 1
