"""Commissioning: everything central that a cluster needs, each thing once."""

import asyncio
import copy
from typing import Any
from uuid import UUID, uuid4

import pytest
from centre import WorkflowCentre, eventually, working
from cluster_states import has_commits, is_told

from edgewright.application.rendering import RENDERER_IN_FORCE, RenderInputs
from edgewright.domain.cluster import ConditionStatus, ConditionType, Phase, StepName, StepState
from edgewright.domain.lifecycle import COMMISSIONING
from edgewright.domain.projection import Projection
from edgewright.domain.rendering import RENDERER_VERSION
from edgewright.domain.wellknown import (
    APP_CLUSTER_SETUP_STATUS,
    APP_FLUX_TEMPLATE,
    APP_GIT_REPOSITORY,
    APP_HELM_CHART_TEMPLATE,
    APP_INSTALLATION,
    APP_SPARKPLUG_ADDRESS,
    CLASS_SERVICE,
    OBJECT_DEFAULT_CHART,
    OBJECT_FLUX_TEMPLATE,
    SERVICE_CLUSTER_MANAGER,
)
from edgewright.errors import Conflict, Waiting
from edgewright.messages import names
from edgewright.ports.config_store import NewEntry
from workflows import policies


async def commits(centre: WorkflowCentre, cluster: UUID) -> int:
    return len(await asyncio.to_thread(centre.git.log, cluster, limit=100))


async def kinds(centre: WorkflowCentre, cluster: UUID) -> list[str]:
    return [event.kind for event in await centre.audit.timeline(cluster)]


async def test_a_written_entry_becomes_a_ready_cluster(centre: WorkflowCentre) -> None:
    cluster = await centre.create("press-shop")
    entries = centre.ports.config
    status = await entries.get(APP_CLUSTER_SETUP_STATUS, cluster)
    address = await entries.get(APP_SPARKPLUG_ADDRESS, cluster)
    repository = await entries.get(APP_GIT_REPOSITORY, cluster)
    assert status is not None and status.body["ready"] is True
    assert address is not None and address.body == {"group_id": "ACME-press-shop"}
    assert repository is not None and repository.body["path"] == "cluster/press-shop"
    assert {account.role.value for account in await centre.ports.accounts.of_cluster(cluster)} == {"flux", "agent"}
    assert await commits(centre, cluster) == 1
    row = await centre.row(cluster)
    assert row.projection is not None
    assert row.projection.phase is Phase.AWAITING_BOOTSTRAP
    assert row.projection.status_of(ConditionType.COMMISSIONED) is ConditionStatus.TRUE


async def activities(centre: WorkflowCentre, cluster: UUID) -> list[str]:
    """The activities of a cluster's workflow, in the order in which they were asked for."""
    return [
        event.activity_task_scheduled_event_attributes.activity_type.name
        async for event in centre.handle(cluster).fetch_history_events()
        if event.HasField("activity_task_scheduled_event_attributes")
    ]


async def steps_in_bulk_queue(centre: WorkflowCentre, cluster: UUID) -> int:
    """How many activities with steps of a cluster's workflow went to the bulk queue; none may go elsewhere."""
    events = [
        event.activity_task_scheduled_event_attributes
        async for event in centre.handle(cluster).fetch_history_events()
        if event.HasField("activity_task_scheduled_event_attributes")
    ]
    steps = [event for event in events if event.activity_type.name not in {"read_wanted", "publish"}]
    assert {event.task_queue.name for event in steps} == {names.BULK_QUEUE}
    return len(steps)


async def test_steps_that_go_well_are_one_activity(centre: WorkflowCentre) -> None:
    cluster = await centre.create("smooth")
    await eventually(lambda: is_told(centre, cluster))
    assert await activities(centre, cluster) == ["read_and_commission", "publish"]
    told = [event.detail["step"] for event in await centre.audit.timeline(cluster) if event.kind == "step.done"]
    assert told == list(COMMISSIONING)


async def test_what_an_older_worker_has_scheduled_is_still_done(
    idle_centre: WorkflowCentre, patchable: pytest.MonkeyPatch
) -> None:
    for policy in (policies.READ, policies.PUBLISH):
        patchable.setitem(policy, "task_queue", names.INTERACTIVE_QUEUE)
    async with working(idle_centre):
        cluster = await idle_centre.create("upgraded")
        history = await idle_centre.handle(cluster).fetch_history()
    queues = {
        event.activity_task_scheduled_event_attributes.task_queue.name
        for event in history.events
        if event.HasField("activity_task_scheduled_event_attributes")
    }
    assert queues == {names.INTERACTIVE_QUEUE, names.BULK_QUEUE}


async def test_a_doubled_nudge_changes_nothing(centre: WorkflowCentre) -> None:
    cluster = await centre.create("twice")
    before = await centre.row(cluster)
    for _ in range(5):
        await centre.fleet.nudge(cluster)
    await centre.handle(cluster).query(names.QUERY_READINESS)
    after = await centre.row(cluster)
    assert await commits(centre, cluster) == 1
    assert before.projection and after.projection
    assert after.projection.steps == before.projection.steps


async def test_twenty_at_once_are_all_ready_with_nothing_doubled(centre: WorkflowCentre) -> None:
    made = await asyncio.gather(*(centre.create(f"line-{number}") for number in range(20)))
    for cluster in made:
        assert await commits(centre, cluster) == 1
        assert len(await centre.ports.accounts.of_cluster(cluster)) == 2


async def test_a_change_is_rendered_and_committed_without_unreadying(centre: WorkflowCentre) -> None:
    cluster = await centre.create("changing")
    status_before = await centre.ports.config.get(APP_CLUSTER_SETUP_STATUS, cluster)
    await centre.write(cluster, "changing", values={"replicas": 3})
    await centre.until(cluster, lambda row: bool(row.projection and row.projection.change_done == row.change))
    await eventually(lambda: is_rendered(centre, cluster, b"replicas: 3"))
    status = await centre.ports.config.get(APP_CLUSTER_SETUP_STATUS, cluster)
    assert status_before and status and status.body["ready"] is True
    assert await commits(centre, cluster) == 2
    assert "phase.changed" not in (await kinds(centre, cluster))[-3:]


async def is_rendered(
    centre: WorkflowCentre, cluster: UUID, text: bytes, *, file: str = "edo/cluster/edge-cluster.yaml"
) -> bool:
    head = await asyncio.to_thread(centre.git.head, cluster)
    assert head
    content = await asyncio.to_thread(centre.git.read, cluster, file, at=head)
    return content is not None and text in content


async def test_the_same_entry_again_makes_no_commit(centre: WorkflowCentre) -> None:
    cluster = await centre.create("same")
    await centre.write(cluster, "same")
    await centre.until(cluster, lambda row: bool(row.projection and row.projection.change_done == row.change))
    assert await commits(centre, cluster) == 1


async def test_a_changed_template_re_renders_the_clusters_that_use_it(centre: WorkflowCentre) -> None:
    cluster = await centre.create("templated")
    await eventually(lambda: is_told(centre, cluster))
    commissioning = await steps_in_bulk_queue(centre, cluster)
    entries = centre.ports.config
    chart = await entries.get(APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART)
    assert chart is not None
    changed = {**chart.body, "values": {**chart.body["values"], "marker": "new-template"}}
    await entries.put(APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART, changed, actor="token:test")
    users = await centre.directory.using_template(APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART)
    assert cluster in users
    await centre.fleet.nudge(cluster, bulk=True)
    await eventually(lambda: is_rendered(centre, cluster, b"new-template"))
    assert await steps_in_bulk_queue(centre, cluster) > commissioning
    status = await entries.get(APP_CLUSTER_SETUP_STATUS, cluster)
    assert status is not None and status.body["ready"] is True


async def test_a_shorter_interval_in_the_flux_template_reaches_the_edges(centre: WorkflowCentre) -> None:
    cluster = await centre.create("impatient")
    entries = centre.ports.config
    flux = await entries.get(APP_FLUX_TEMPLATE, OBJECT_FLUX_TEMPLATE)
    assert flux is not None
    changed = copy.deepcopy(flux.body)
    changed["self-link.yaml"][0]["spec"]["interval"] = "1m"
    await entries.put(APP_FLUX_TEMPLATE, OBJECT_FLUX_TEMPLATE, changed, actor="token:test")
    assert cluster in await centre.directory.using_template(APP_FLUX_TEMPLATE, OBJECT_FLUX_TEMPLATE)
    await centre.fleet.nudge(cluster, bulk=True)
    wanted = b"  interval: 1m\n  ref:\n"
    await eventually(lambda: is_rendered(centre, cluster, wanted, file="edo/cluster/self-link.yaml"))


async def test_a_bad_template_blocks_in_words_and_heals_when_it_is_mended(centre: WorkflowCentre) -> None:
    entries = centre.ports.config
    chart = await entries.get(APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART)
    assert chart is not None
    broken = {**chart.body, "values": {"site": "{{ no.such.thing }}"}}
    await entries.put(APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART, broken, actor="token:test")
    cluster = uuid4()
    await centre.write(cluster, "blocked")
    row = await centre.until(cluster, lambda row: blocked(row.projection) is ConditionStatus.TRUE)
    assert row.projection is not None
    condition = next(c for c in row.projection.conditions if c.type is ConditionType.BLOCKED)
    assert "no.such.thing" in condition.message
    assert "Helm chart template" in condition.message
    assert not row.projection.ready
    await entries.put(APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART, chart.body, actor="token:test")
    await centre.fleet.nudge(cluster)
    row = await centre.until(cluster, lambda row: bool(row.projection and row.projection.ready))
    assert blocked(row.projection) is ConditionStatus.FALSE


def blocked(projection: Projection | None) -> ConditionStatus | None:
    return projection.status_of(ConditionType.BLOCKED) if projection else None


class StuckGit:
    """Git storage that is away until it is mended."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.mended = False

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    def create_repository(self, *args: object, **more: object) -> None:
        if not self.mended:
            raise Waiting("The Git storage is away.", code="git_unavailable", retry_after=0.1)
        self._real.create_repository(*args, **more)


async def test_a_failing_step_says_what_it_waits_for_and_heals(idle_centre: WorkflowCentre) -> None:
    git = StuckGit(idle_centre.git)
    async with working(idle_centre, git=git):
        cluster = uuid4()
        await idle_centre.write(cluster, "stuck")
        row = await idle_centre.until(
            cluster, lambda row: bool(row.projection and "Git storage is away" in row.projection.waiting_for)
        )
        assert row.projection is not None
        step = next(record for record in row.projection.steps if record.name is StepName.CREATE_REPOSITORY)
        assert step.state is StepState.WAITING
        assert step.next_at is not None
        assert "create_repository, attempt 2 at" in row.projection.waiting_for
        git.mended = True
        await idle_centre.until(cluster, lambda row: bool(row.projection and row.projection.ready))
        assert "step.failed" in await kinds(idle_centre, cluster)


async def test_retry_tries_now(idle_centre: WorkflowCentre) -> None:
    git = StuckGit(idle_centre.git)
    async with working(idle_centre, git=git):
        cluster = uuid4()
        await idle_centre.write(cluster, "retried")
        await idle_centre.until(
            cluster,
            lambda row: bool(
                row.projection and any(r.attempts >= 3 and r.state is StepState.WAITING for r in row.projection.steps)
            ),
        )
        git.mended = True
        await idle_centre.fleet.retry_step(cluster, StepName.CREATE_REPOSITORY, actor="token:test")
        await idle_centre.until(cluster, lambda row: bool(row.projection and row.projection.ready), seconds=3)


@pytest.mark.parametrize("verb", ["retry_step", "skip_step"])
async def test_a_finished_step_of_commissioning_is_neither_retried_nor_skipped(
    centre: WorkflowCentre, verb: str
) -> None:
    cluster = await centre.create(f"verb-{verb.replace('_', '-')}")
    fleet = centre.fleet
    with pytest.raises(Conflict):
        if verb == "retry_step":
            await fleet.retry_step(cluster, StepName.CREATE_REPOSITORY, actor="token:test")
        else:
            await fleet.skip_step(cluster, StepName.CREATE_REPOSITORY, reason="because", actor="token:test")


async def test_a_pause_holds_commits_until_it_ends(centre: WorkflowCentre) -> None:
    cluster = await centre.create("paused")
    await centre.fleet.pause(cluster, reason="shift change", actor="token:test")
    await centre.write(cluster, "paused", values={"held": True})
    row = await centre.until(
        cluster, lambda row: bool(row.projection and "commits are paused" in row.projection.waiting_for)
    )
    assert row.projection and row.projection.ready
    assert row.projection.status_of(ConditionType.PAUSED) is ConditionStatus.TRUE
    assert await commits(centre, cluster) == 1
    await centre.fleet.resume(cluster, actor="token:test")
    await eventually(lambda: is_rendered(centre, cluster, b"held: true"))


async def test_the_web_ui_shows_a_cluster_that_makes_sense(centre: WorkflowCentre) -> None:
    cluster = await centre.create("visible")

    async def listed() -> bool:
        query = "EdgewrightName = 'visible' AND EdgewrightPhase = 'AwaitingBootstrap' AND EdgewrightReady = true"
        return [e.id async for e in centre.client.list_workflows(query)] == [names.workflow_id(cluster)]

    await eventually(listed)
    answer = await centre.handle(cluster).query(names.QUERY_READINESS)
    assert answer == {"ready": True, "phase": "AwaitingBootstrap", "waiting_for": ""}
    details = await centre.handle(cluster).query("__temporal_workflow_metadata")
    assert "visible" in str(details) and "AwaitingBootstrap" in str(details)


async def test_a_workflow_for_something_that_was_never_a_cluster_ends_in_words(centre: WorkflowCentre) -> None:
    stranger = uuid4()
    await centre.fleet.nudge(stranger)

    async def failed() -> bool:
        status = (await centre.handle(stranger).describe()).status
        return status is not None and status.name == "FAILED"

    await eventually(failed)


async def test_workers_of_two_renderer_versions_do_not_render_by_turns(idle_centre: WorkflowCentre) -> None:
    """Only the version renders that the last `admin init` has put in force; the others leave it to its workers."""
    entries, place = idle_centre.ports.config, (APP_INSTALLATION, SERVICE_CLUSTER_MANAGER)
    await entries.install([NewEntry(*place, CLASS_SERVICE, {RENDERER_IN_FORCE: RENDERER_VERSION})])
    async with working(idle_centre):
        cluster = await idle_centre.create("rendered-once")
        before = await commits(idle_centre, cluster)
        await entries.put(*place, {RENDERER_IN_FORCE: RENDERER_VERSION + 1}, actor="centre")
        await idle_centre.write(cluster, "rendered-once", values={"replicas": 2})
        row = await idle_centre.row(cluster)
        inputs = RenderInputs(entries, "https://edgewright.example.com")
        with pytest.raises(Waiting, match=f"version {RENDERER_VERSION + 1} is in force"):
            await inputs.collect(row)
        assert await commits(idle_centre, cluster) == before
        await entries.put(*place, {RENDERER_IN_FORCE: RENDERER_VERSION}, actor="centre")
        await eventually(lambda: has_commits(idle_centre, cluster, before + 1))
