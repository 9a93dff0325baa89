"""`temporal workflow reset` gives a run its old messages once more. None of them is applied again."""

from uuid import UUID, uuid4

import pytest
from centre import WorkflowCentre, eventually
from cluster_states import at_phase, at_step, is_told, kinds, tells
from sealing_keys import certificate_pem, private_key
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.enums.v1 import EventType
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest

from edgewright.application.edge_status import EdgeStatusDoor
from edgewright.domain.cluster import Desired, Phase, StepName, StepState
from edgewright.domain.wellknown import APP_CLUSTER_STATUS
from edgewright.messages import names
from edgewright.messages.cluster import PauseVerb

OWN, FOREIGN, NEWER = (certificate_pem(private_key(bits)) for bits in (2048, 3072, 4096))


async def reset(centre: WorkflowCentre, cluster: UUID) -> None:
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


async def hosts(centre: WorkflowCentre, cluster: UUID) -> list[str]:
    entry = await centre.ports.config.get(APP_CLUSTER_STATUS, cluster)
    return [host["hostname"] for host in entry.body["hosts"]] if entry else []


async def says(centre: WorkflowCentre, cluster: UUID, name: str) -> None:
    """Sends a status by signal, and waits until it is recorded."""
    await centre.handle(cluster).signal(names.SIGNAL_EDGE_STATUS, {"hosts": [{"hostname": name}]})

    async def recorded() -> bool:
        return await hosts(centre, cluster) == [name]

    await eventually(recorded)


async def test_an_old_status_does_not_come_back_with_a_reset_and_a_new_one_is_taken(centre: WorkflowCentre) -> None:
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


async def test_a_pause_that_has_ended_does_not_come_back_with_a_reset(centre: WorkflowCentre) -> None:
    cluster = await centre.create("resumed")
    await centre.fleet.pause(cluster, reason="shift change", actor="token:test")
    await centre.fleet.resume(cluster, actor="token:test")
    await eventually(lambda: is_told(centre, cluster))
    await reset(centre, cluster)
    await says(centre, cluster, "awake")
    assert not (await centre.row(cluster)).paused
    assert (await kinds(centre, cluster)).count("cluster.paused") == 1


async def test_a_resume_that_was_overtaken_by_a_pause_does_not_come_back_with_a_reset(centre: WorkflowCentre) -> None:
    """Sent without ``seen``, as Temporal's own tools do: by that alone a resume could be told to be old."""
    cluster = await centre.create("paused-again")
    for update, reason in (
        (names.UPDATE_PAUSE, "shift change"),
        (names.UPDATE_RESUME, ""),
        (names.UPDATE_PAUSE, "inventory"),
    ):
        await centre.handle(cluster).execute_update(update, PauseVerb(actor="token:test", reason=reason))
    await eventually(lambda: is_told(centre, cluster))
    await reset(centre, cluster)

    async def all_refused() -> bool:
        told = await kinds(centre, cluster)
        return (told.count("pause.refused"), told.count("resume.refused")) == (2, 1)

    await eventually(all_refused)
    row = await centre.row(cluster)
    assert (row.paused, row.paused_reason) == (True, "inventory")
    told = await kinds(centre, cluster)
    assert (told.count("cluster.paused"), told.count("cluster.resumed")) == (2, 1)
    await centre.handle(cluster).execute_update(names.UPDATE_RESUME, PauseVerb(actor="token:test"))
    assert not (await centre.row(cluster)).paused, "a resume of now is taken"


async def reports(centre: WorkflowCentre, cluster: UUID, pem: str, *, actor: str = "agent") -> None:
    """Brings a certificate as the agent does, or as an admin who confirms one."""
    door = EdgeStatusDoor(centre.directory, centre.ports.edge_reports, centre.ports.config)
    await door.record(cluster, {"hosts": [], "kubeseal_cert": pem}, merge=False, actor=actor, generation=1)


async def proposes(centre: WorkflowCentre, cluster: UUID, pem: str, signal: str) -> None:
    body = {"hosts": [], "kubeseal_cert": pem} if signal == names.SIGNAL_EDGE_STATUS else {"kubeseal_cert": pem}
    await centre.handle(cluster).signal(signal, body)
    await centre.until(cluster, lambda row: row.proposed_pem == pem)


async def certificates(centre: WorkflowCentre, cluster: UUID) -> tuple[str | None, str | None]:
    row = await centre.row(cluster)
    return row.certificate_pem, row.proposed_pem


REFUSAL = {names.SIGNAL_EDGE_STATUS: "edge_status.refused", names.SIGNAL_SEALING_KEY_ROTATED: "sealing_key.refused"}


@pytest.mark.parametrize("signal", REFUSAL)
async def test_a_proposed_certificate_that_was_dropped_does_not_come_back_with_a_reset(
    centre: WorkflowCentre, signal: str
) -> None:
    cluster = await centre.create("dropped")
    await reports(centre, cluster, OWN)
    await proposes(centre, cluster, FOREIGN, signal)
    await reports(centre, cluster, NEWER)  # which forgets the proposal
    assert await certificates(centre, cluster) == (NEWER, None)
    await eventually(lambda: is_told(centre, cluster))
    await reset(centre, cluster)
    await eventually(lambda: tells(centre, cluster, REFUSAL[signal]))
    assert await certificates(centre, cluster) == (NEWER, None)
    await proposes(centre, cluster, FOREIGN, signal)


@pytest.mark.parametrize("signal", REFUSAL)
async def test_a_confirmed_certificate_that_was_replaced_does_not_come_back_with_a_reset(
    centre: WorkflowCentre, signal: str
) -> None:
    cluster = await centre.create("replaced")
    await reports(centre, cluster, OWN)
    await proposes(centre, cluster, FOREIGN, signal)
    await reports(centre, cluster, FOREIGN, actor="token:admin")
    assert await certificates(centre, cluster) == (FOREIGN, None)
    await reports(centre, cluster, NEWER)
    await eventually(lambda: is_told(centre, cluster))
    before = (await kinds(centre, cluster)).count("certificate.changed")
    await reset(centre, cluster)
    await eventually(lambda: tells(centre, cluster, REFUSAL[signal]))
    assert await certificates(centre, cluster) == (NEWER, None)
    told = await kinds(centre, cluster)
    assert (told.count("certificate.proposed"), told.count("certificate.changed")) == (1, before)


async def test_a_deletion_that_was_taken_back_does_not_come_back_with_a_reset(centre: WorkflowCentre) -> None:
    cluster = await centre.create("kept")
    await centre.fleet.pause(cluster, reason="keep the deletion from going on", actor="token:test")
    await centre.handle(cluster).signal(names.SIGNAL_DELETE, {})
    await centre.until(cluster, lambda row: row.desired is Desired.DELETED)
    await centre.wishes.undelete(cluster, actor="token:test")
    await centre.fleet.resume(cluster, actor="token:test")
    await eventually(lambda: is_told(centre, cluster))
    await reset(centre, cluster)
    await eventually(lambda: tells(centre, cluster, "delete.refused"))
    row = await centre.row(cluster)
    assert row.desired is Desired.PRESENT
    assert row.projection is not None and row.projection.phase is not Phase.DELETED


async def test_a_skipped_step_is_skipped_once_whatever_a_reset_brings_again(centre: WorkflowCentre) -> None:
    cluster = await centre.create("skipped")
    await centre.bootstrap(cluster)
    await centre.wishes.request_deletion(cluster, actor="token:test")
    await centre.fleet.nudge(cluster)
    await centre.until(cluster, at_step(StepName.AWAIT_EMPTY))
    await centre.fleet.skip_step(cluster, StepName.AWAIT_EMPTY, reason="scrapped", actor="token:ann")
    await centre.until(cluster, at_step(StepName.AWAIT_GOODBYE))
    await eventually(lambda: is_told(centre, cluster))
    await reset(centre, cluster)

    async def goes_on() -> bool:
        present = {each.name: each.state for each in (await centre.fleet.readiness(cluster)).steps}
        return present.get(StepName.AWAIT_GOODBYE) is StepState.RUNNING

    await eventually(goes_on)
    await centre.fleet.skip_step(cluster, StepName.AWAIT_GOODBYE, reason="gone", actor="token:ann")
    row = await centre.until(cluster, at_phase(Phase.DELETED))
    assert row.projection and [each.reason for each in row.projection.residue] == ["scrapped", "gone"]
    assert (await kinds(centre, cluster)).count("step.skipped") == 2
