"""The first reading of a run and the steps of a new cluster are one activity. It may stand in the bulk queue for
long, and nobody who wants something of the cluster waits for that."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from centre import WorkflowCentre, eventually, working
from cluster_states import at_phase, has_commits, is_told, kinds, staged, states
from temporalio.testing import ActivityEnvironment

from activities.composition import NO_TRACES
from activities.step_chain import StepChainActivities
from edgewright.domain.cluster import Desired, Phase, StepName
from edgewright.domain.lifecycle import CENTRAL_DELETION, COMMISSIONING
from edgewright.domain.projection import Projection
from edgewright.errors import Waiting
from edgewright.messages import names
from edgewright.messages.steps import Beginning, FinishedStep, Reading, ReadWanted, StepInput, StepResult
from edgewright.ports.secret_staging import StagedState

ONE_ACTIVITY = "read_and_commission"


async def activities(centre: WorkflowCentre, cluster: UUID) -> list[str]:
    """Those of a cluster's workflow, in the order in which they were asked for."""
    return [
        event.activity_task_scheduled_event_attributes.activity_type.name
        async for event in centre.handle(cluster).fetch_history_events()
        if event.HasField("activity_task_scheduled_event_attributes")
    ]


async def waiting_in_the_bulk_queue(centre: WorkflowCentre, name: str) -> UUID:
    """A new cluster whose first activity is not begun, because nobody polls its queue."""
    cluster = uuid4()
    await centre.write(cluster, name)
    await eventually(lambda: is_asked_for(centre, cluster))
    return cluster


async def is_asked_for(centre: WorkflowCentre, cluster: UUID) -> bool:
    return await activities(centre, cluster) == [ONE_ACTIVITY]


async def has_read(centre: WorkflowCentre, cluster: UUID, times: int) -> bool:
    return (await activities(centre, cluster)).count("read_wanted") >= times


async def steps_done(centre: WorkflowCentre, cluster: UUID) -> list[Any]:
    return [event.detail["step"] for event in await centre.audit.timeline(cluster) if event.kind == "step.done"]


async def test_nudges_do_not_cost_a_new_cluster_its_place_in_the_queue(idle_centre: WorkflowCentre) -> None:
    centre = idle_centre
    async with working(centre, but=names.BULK_QUEUE):
        cluster = await waiting_in_the_bulk_queue(centre, "patient")
        for times in (1, 2):
            await centre.fleet.nudge(cluster)
            await eventually(partial(has_read, centre, cluster, times))
        status = await centre.fleet.readiness(cluster)
        assert status.waiting_for == "step allocate_address, attempt 1"
    async with working(centre):
        await centre.until(cluster, at_phase(Phase.AWAITING_BOOTSTRAP))
        await eventually(lambda: is_told(centre, cluster))
    assert await activities(centre, cluster) == [ONE_ACTIVITY, "read_wanted", "read_wanted", "publish"]
    assert await steps_done(centre, cluster) == list(COMMISSIONING)


async def test_what_is_written_while_a_new_cluster_waits_is_what_it_is_made_from(idle_centre: WorkflowCentre) -> None:
    centre = idle_centre
    async with working(centre, but=names.BULK_QUEUE):
        cluster = await waiting_in_the_bulk_queue(centre, "rewritten")
        await centre.write(cluster, "rewritten", values={"marker": "newer"})
        await eventually(lambda: has_read(centre, cluster, 1))
    async with working(centre):
        await centre.until(cluster, at_phase(Phase.AWAITING_BOOTSTRAP))
        await eventually(lambda: is_told(centre, cluster))
    done = [name for name in await activities(centre, cluster) if name != "publish"]
    assert done == [ONE_ACTIVITY, "read_wanted", "run_steps"]
    assert await steps_done(centre, cluster) == list(COMMISSIONING)
    assert await has_commits(centre, cluster, 1)
    head = await asyncio.to_thread(centre.git.head, cluster)
    assert head
    files = [centre.git.read(cluster, path, at=head) or b"" for path in centre.git.list(cluster, "", at=head)]
    assert b"newer" in b"".join(files)


async def test_a_deletion_does_not_wait_for_the_first_steps(idle_centre: WorkflowCentre) -> None:
    centre = idle_centre
    async with working(centre, but=names.BULK_QUEUE):
        cluster = await waiting_in_the_bulk_queue(centre, "deleted-early")
        await centre.wishes.request_deletion(cluster, actor="token:test")
        await centre.fleet.nudge(cluster)
        await centre.until(cluster, at_phase(Phase.DELETED))
    assert await steps_done(centre, cluster) == [StepName.BEGIN_DELETION, *CENTRAL_DELETION]
    async with working(centre):
        await centre.create("next")  # whatever stood in the queue was taken before
    assert not await asyncio.to_thread(centre.git.exists, cluster)


async def test_a_pause_reaches_a_new_cluster_that_waits(idle_centre: WorkflowCentre) -> None:
    centre = idle_centre
    async with working(centre, but=names.BULK_QUEUE):
        cluster = await waiting_in_the_bulk_queue(centre, "paused-early")
        projection = await centre.fleet.pause(cluster, reason="wait", actor="token:test")
        assert "Paused" in str(projection.conditions)
    async with working(centre):
        held = "step populate_repository: commits are paused"
        await centre.until(cluster, lambda row: bool(row.projection and row.projection.waiting_for == held))
        assert await asyncio.to_thread(centre.git.head, cluster) is None
        await centre.fleet.resume(cluster, actor="token:test")
        await centre.until(cluster, at_phase(Phase.AWAITING_BOOTSTRAP))
    assert sorted(await steps_done(centre, cluster)) == sorted(COMMISSIONING)


async def test_a_secret_does_not_wait_for_the_first_reading_of_a_new_run(idle_centre: WorkflowCentre) -> None:
    centre = idle_centre
    async with working(centre):
        cluster = await centre.create("begun-anew")
        await eventually(lambda: is_told(centre, cluster))
    await centre.handle(cluster).terminate()
    async with working(centre, but=names.BULK_QUEUE):
        await centre.fleet.nudge(cluster, bulk=True)
        await eventually(lambda: is_asked_for(centre, cluster))
        change = staged(cluster, "db", "key")
        await centre.ports.staging.stage([change])
        await centre.fleet.change_secrets(cluster, [change.request])
        assert await states(centre, [change]) == {StagedState.COMMITTED: 1}
    async with working(centre):
        await centre.write(cluster, "begun-anew", values={"marker": "later"})
        await eventually(lambda: has_commits(centre, cluster, 3))
        await eventually(lambda: is_told(centre, cluster))
    assert await steps_done(centre, cluster) == [
        *COMMISSIONING,
        StepName.POPULATE_REPOSITORY,
        StepName.PUBLISH_STATUS,
    ]


async def test_a_run_that_is_begun_anew_reads_once_and_does_nothing_again(idle_centre: WorkflowCentre) -> None:
    centre = idle_centre
    async with working(centre):
        cluster = await centre.create("rested")
        await eventually(lambda: is_told(centre, cluster))
        told = await kinds(centre, cluster)
        await centre.handle(cluster).terminate()
        await centre.fleet.nudge(cluster, bulk=True)
        await eventually(lambda: is_told(centre, cluster))
    assert (await activities(centre, cluster))[:1] == [ONE_ACTIVITY]
    assert set(await activities(centre, cluster)) <= {ONE_ACTIVITY, "publish"}
    assert await kinds(centre, cluster) == told


class AwayAtFirst:
    """Clusters that cannot be read for some calls."""

    def __init__(self, real: Any, calls: int) -> None:
        self._real, self._left = real, calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def read_wanted(self, cluster: UUID) -> Any:
        if self._left:
            self._left -= 1
            raise Waiting("The database is away.", code="database_unavailable", retry_after=0.1)
        return await self._real.read_wanted(cluster)


async def test_a_first_reading_that_fails_is_tried_again(idle_centre: WorkflowCentre) -> None:
    async with working(idle_centre, steps=AwayAtFirst(idle_centre.steps, 2)):
        cluster = await idle_centre.create("read-later")
        await eventually(lambda: is_told(idle_centre, cluster))
    assert (await activities(idle_centre, cluster))[:2] == [ONE_ACTIVITY, "read_wanted"]
    assert await steps_done(idle_centre, cluster) == list(COMMISSIONING)


async def beginning_with(reading: Reading, *, fails: StepName | None = None) -> tuple[Beginning, Sequence[StepName]]:
    """What the activity makes of a reading, and the steps that it has tried."""
    tried: list[StepName] = []

    async def step(wish: StepInput) -> StepResult:
        tried.append(wish.step)
        if wish.step is fails:
            raise Waiting("Not now.", code="away")
        return StepResult(note=wish.fence.trailer())

    async def read(_question: ReadWanted) -> Reading:
        return reading

    doing = StepChainActivities(dict.fromkeys(COMMISSIONING, step), read, NO_TRACES)
    answer = await ActivityEnvironment().run(doing.read_and_commission, ReadWanted(cluster=uuid4(), seed=True))
    return answer, tried


@pytest.fixture
async def reading(idle_centre: WorkflowCentre) -> Reading:
    """The reading of a new cluster."""
    cluster = uuid4()
    body = {"name": "new", "namespace": "edgewright"}
    await idle_centre.wishes.write_configuration(cluster, body, actor="token:test", create_object=True)
    return Reading(wanted=await idle_centre.steps.read_wanted(cluster))


async def test_steps_of_a_new_cluster_are_run_under_the_fence_of_their_reading(reading: Reading) -> None:
    answer, tried = await beginning_with(reading)
    assert tried == list(COMMISSIONING)
    assert answer.reading == reading
    assert answer.fence and reading.wanted and answer.fence.change == reading.wanted.change
    assert answer.finished == tuple(
        FinishedStep(step=step, result=StepResult(note=answer.fence.trailer()), seconds=0.0) for step in COMMISSIONING
    )


async def test_a_first_step_that_fails_ends_the_beginning_and_not_its_reading(reading: Reading) -> None:
    answer, tried = await beginning_with(reading, fails=StepName.CREATE_REPOSITORY)
    assert tried == list(COMMISSIONING[:3])
    assert [each.step for each in answer.finished] == list(COMMISSIONING[:2])
    assert answer.reading == reading


@pytest.mark.parametrize(
    "changes", [{"desired": Desired.DELETED}, {"desired": Desired.REMOVED}, {"generation": 2}, None], ids=str
)
async def test_no_step_is_begun_of_a_cluster_that_is_not_new(
    reading: Reading, changes: dict[str, Any] | None
) -> None:
    assert reading.wanted
    known = (
        reading.model_copy(update={"wanted": reading.wanted.model_copy(update=changes)})
        if changes
        else reading.model_copy(update={"seed": Projection(sequence=1, phase=Phase.ACTIVE, ready=True)})
    )
    assert await beginning_with(known) == (Beginning(reading=known), [])


async def test_no_step_is_begun_of_what_was_never_a_cluster() -> None:
    assert await beginning_with(Reading()) == (Beginning(reading=Reading()), [])


async def test_a_paused_cluster_begins_without_a_commit(reading: Reading) -> None:
    assert reading.wanted
    paused = reading.model_copy(update={"wanted": reading.wanted.model_copy(update={"paused": True})})
    assert (await beginning_with(paused))[1] == list(COMMISSIONING[:3])
