"""Removal, recreation, deletion, and the ends of runs."""

import asyncio
from datetime import timedelta
from uuid import UUID

from centre import eventually
from cluster_states import at_phase, at_step
from walk import (
    ACTOR,
    Faulty,
    Walk,
    away,
    change_secrets,
    is_waiting,
    path,
    through_several_runs,
)

from edgewright.domain.cluster import (
    Phase,
    StepName,
    Workloads,
)
from edgewright.domain.ended import Purge
from edgewright.messages import names

# --- removal and recreation --------------------------------------------------------------------------------------


async def remove(walk: Walk, cluster: UUID) -> None:
    await walk.centre.wishes.request_removal(cluster, actor=ACTOR)
    await walk.nudge(cluster)
    await walk.until(cluster, at_phase(Phase.REMOVED))
    await walk.told(cluster)


@path
async def removal_and_recreation(walk: Walk) -> UUID:
    async with walk.working():
        cluster = await walk.active()
        await remove(walk, cluster)
        await walk.centre.write(cluster, walk.name, values={"chart": "new"})
        await walk.until(cluster, lambda row: bool(row.projection and row.projection.ready))
        await walk.told(cluster)
        return cluster


@path
async def recreation_for_new_hardware(walk: Walk) -> UUID:
    async with walk.working():
        cluster = await walk.active()
        await change_secrets(walk, cluster, ["password"])
        await walk.centre.wishes.request_recreation(cluster, actor=ACTOR, new_hardware=True)
        await walk.nudge(cluster)
        await walk.until(cluster, lambda row: bool(row.projection and row.projection.done.generation == 2))
        await walk.told(cluster)
        return cluster


@path
async def move_before_the_first_commissioning_is_done(walk: Walk) -> UUID:
    steps = Faulty(walk.centre.steps, "publish_setup_status")
    steps.fault = away(1.0)
    async with walk.working(steps=steps):
        cluster = await walk.begin()
        await walk.until(cluster, lambda row: bool(row.projection and row.projection.waiting_for))
        await walk.centre.wishes.request_recreation(cluster, actor=ACTOR, new_hardware=True)
        steps.fault = None
        await walk.nudge(cluster)
        await walk.until(cluster, lambda row: bool(row.projection and row.projection.done.generation == 2))
        await walk.told(cluster)
        return cluster


# --- deletion ----------------------------------------------------------------------------------------------------


@path
async def undelete(walk: Walk) -> UUID:
    async with walk.working():
        cluster = await walk.create()
    await walk.centre.wishes.request_deletion(cluster, actor=ACTOR)
    await walk.centre.wishes.undelete(cluster, actor=ACTOR)
    async with walk.working():
        await walk.nudge(cluster)
        await walk.until(cluster, lambda row: bool(row.projection and row.projection.change_done == row.change))
        await walk.told(cluster)
        return cluster


@path
async def deletion_before_any_bootstrap(walk: Walk) -> UUID:
    async with walk.working():
        cluster = await walk.create()
        await walk.delete(cluster)
        await walk.gone(cluster)
        return cluster


@path
async def deletion_by_signal(walk: Walk) -> UUID:
    async with walk.working():
        cluster = await walk.create()
        await walk.centre.handle(cluster).signal(names.SIGNAL_DELETE)
        await walk.gone(cluster)
        return cluster


@path
async def deletion_with_goodbye(walk: Walk) -> UUID:
    async with walk.working():
        cluster, reports = await walk.active(), walk.centre.ports.edge_reports
        await walk.delete(cluster)
        await walk.until(cluster, at_step(StepName.AWAIT_EMPTY))
        await reports.inventory_empty(cluster, 1)
        await walk.nudge(cluster)
        await walk.until(cluster, at_step(StepName.AWAIT_GOODBYE))
        await reports.goodbye(cluster, 1)
        await walk.nudge(cluster)
        await walk.gone(cluster)
        return cluster


@path
async def deletion_with_purge_by_signal(walk: Walk) -> UUID:
    async with walk.working():
        cluster, reports = await walk.active(), walk.centre.ports.edge_reports
        await walk.centre.handle(cluster).signal(names.SIGNAL_DELETE, {"force": True, "purge": True})  # refused
        await walk.centre.handle(cluster).signal(names.SIGNAL_DELETE, {"purge": True})
        await walk.until(cluster, at_step(StepName.AWAIT_EMPTY))
        await reports.inventory_empty(cluster, 1)
        await walk.nudge(cluster)
        await walk.until(cluster, at_step(StepName.AWAIT_GOODBYE))
        await reports.goodbye(cluster, 1, Purge(done=True))
        await walk.nudge(cluster)
        await walk.gone(cluster)
        return cluster


@path
async def deletion_that_raises_the_fence(walk: Walk) -> UUID:
    async with walk.working():
        cluster, git, reports = await walk.active(), walk.centre.ports.git, walk.centre.ports.edge_reports
        before = await asyncio.to_thread(git.fence_number, cluster)

        async def is_raised() -> bool:
            return await asyncio.to_thread(git.fence_number, cluster) > before

        await walk.centre.wishes.request_deletion(cluster, actor=ACTOR, workloads=Workloads.KEEP)
        await walk.nudge(cluster)
        await eventually(is_raised)
        await walk.until(cluster, at_step(StepName.AWAIT_GOODBYE))
        await reports.goodbye(cluster, 1)
        await walk.nudge(cluster)
        await walk.gone(cluster)
        return cluster


@path
async def deletion_by_force(walk: Walk) -> UUID:
    async with walk.working():
        cluster = await walk.active()
        await walk.delete(cluster)
        await walk.until(cluster, at_step(StepName.AWAIT_EMPTY))
        await walk.centre.handle(cluster).signal(names.SIGNAL_DELETE, {"force": True})
        await walk.gone(cluster)
        return cluster


@path
async def deletion_at_its_deadline(walk: Walk) -> UUID:
    async with walk.working():
        cluster = await walk.active()
        await walk.delete(cluster, deadline=timedelta(seconds=2))
        await walk.gone(cluster)
        return cluster


@path
async def deletion_with_skipped_steps(walk: Walk) -> UUID:
    async with walk.working():
        cluster, fleet = await walk.active(), walk.centre.fleet
        await walk.delete(cluster)
        for step in (StepName.AWAIT_EMPTY, StepName.AWAIT_GOODBYE):
            await walk.until(cluster, at_step(step))
            await fleet.skip_step(cluster, step, reason="scrapped", actor=ACTOR)
        await walk.gone(cluster)
        return cluster


@path
async def deletion_wins_over_a_stuck_step(walk: Walk) -> UUID:
    git = Faulty(walk.centre.git, "create_repository", sync=True)
    git.fault = away(retry_after=60)
    async with walk.working(git=git):
        cluster = await walk.begin()
        await walk.until(cluster, is_waiting)
        await walk.delete(cluster)
        await walk.gone(cluster)
        return cluster


# --- the ends of runs --------------------------------------------------------------------------------------------


async def run_of(walk: Walk, cluster: UUID) -> str | None:
    return (await walk.centre.handle(cluster).describe()).run_id


async def into_the_next_run(walk: Walk, cluster: UUID) -> None:
    """Nudges until the present run has continued as new."""
    before = await run_of(walk, cluster)

    async def is_over() -> bool:
        await walk.nudge(cluster)
        await asyncio.sleep(0.1)
        return await run_of(walk, cluster) != before

    await eventually(is_over)


@through_several_runs
async def continue_as_new(walk: Walk) -> UUID:
    async with walk.working():
        cluster = await walk.active()
        for number in range(12):
            await change_secrets(walk, cluster, [f"key-{number}"])
        await into_the_next_run(walk, cluster)
        return cluster


@through_several_runs
async def continue_as_new_during_a_pause(walk: Walk) -> UUID:
    async with walk.working():
        cluster, fleet = await walk.create(), walk.centre.fleet
        await fleet.pause(cluster, reason="shift change", actor=ACTOR)
        writing = asyncio.create_task(change_secrets(walk, cluster, ["held"]))
        await into_the_next_run(walk, cluster)
        await fleet.resume(cluster, actor=ACTOR)
        await writing
        return cluster


@through_several_runs
async def continue_as_new_during_a_deletion(walk: Walk) -> UUID:
    async with walk.working():
        cluster, fleet = await walk.active(), walk.centre.fleet
        await walk.delete(cluster)
        await walk.until(cluster, at_step(StepName.AWAIT_EMPTY))
        await fleet.skip_step(cluster, StepName.AWAIT_EMPTY, reason="scrapped", actor=ACTOR)
        await walk.until(cluster, at_step(StepName.AWAIT_GOODBYE))
        await into_the_next_run(walk, cluster)
        await walk.centre.ports.edge_reports.goodbye(cluster, 1)
        await walk.nudge(cluster)
        await walk.gone(cluster)
        return cluster


@path
async def history_lost(walk: Walk) -> UUID:
    async with walk.working():
        cluster = await walk.active()
        await walk.centre.handle(cluster).terminate()
        await walk.nudge(cluster)
        await walk.told(cluster)
        await walk.centre.write(cluster, walk.name, values={"replicas": 3})
        await walk.until(cluster, lambda row: bool(row.projection and row.projection.change_done == row.change))
        await walk.told(cluster)
        return cluster


@path
async def history_lost_during_a_deletion(walk: Walk) -> UUID:
    async with walk.working():
        cluster = await walk.active()
        await walk.delete(cluster)
        await walk.until(cluster, at_step(StepName.AWAIT_EMPTY))
        await walk.told(cluster)
        await walk.centre.handle(cluster).terminate()
        await walk.nudge(cluster)
        await walk.told(cluster)
        await walk.centre.ports.edge_reports.goodbye(cluster, 1)
        await walk.nudge(cluster)
        await walk.gone(cluster)
        return cluster
