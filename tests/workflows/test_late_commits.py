"""A commit whose disk stalls, in a thread that nobody can cancel: it wakes when the cluster has moved on."""

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from centre import WorkflowCentre, eventually, working
from cluster_states import at_phase, at_step, is_told, stage

from edgewright.adapters.git.refs import FENCE
from edgewright.domain.cluster import Phase, StepName, Workloads
from edgewright.domain.wellknown import APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART
from edgewright.ports.clusters import ClusterRow


class StallingDisk:
    """Once armed, the first object that is to be on disk is not, until somebody lets it."""

    def __init__(self, fsync: Callable[[int], None]) -> None:
        self._fsync = fsync
        self._armed = threading.Event()
        self.stalled, self.goes_on = threading.Event(), threading.Event()

    def arm(self) -> None:
        self._armed.set()

    def fsync(self, descriptor: int) -> None:
        if self._armed.is_set():
            self._armed.clear()
            self.stalled.set()
            assert self.goes_on.wait(60)
        self._fsync(descriptor)


class Watched:
    """Git that notes what became of each attempt at a commit."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.under_way = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def commit(self, *arguments: Any, **options: Any) -> Any:
        self.under_way += 1
        try:
            return self._real.commit(*arguments, **options)
        finally:
            self.under_way -= 1


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> StallingDisk:
    disk = StallingDisk(os.fsync)
    monkeypatch.setattr(os, "fsync", disk.fsync)
    return disk


def is_current(row: ClusterRow) -> bool:
    return row.projection is not None and row.projection.change_done == row.change


async def rests(centre: WorkflowCentre, cluster: UUID) -> None:
    await centre.until(cluster, is_current)
    await eventually(lambda: is_told(centre, cluster))


async def rendered(centre: WorkflowCentre, cluster: UUID) -> bytes:
    head = await asyncio.to_thread(centre.git.head, cluster)
    assert head
    files = await asyncio.to_thread(centre.git.list, cluster, "edo/cluster", at=head)
    return b"".join([centre.git.read(cluster, path, at=head) or b"" for path in files])


async def wakes(disk: StallingDisk, git: Watched) -> None:
    disk.goes_on.set()

    async def has_ended() -> bool:
        return git.under_way == 0

    await eventually(has_ended)


async def test_a_change_that_was_taken_back_is_not_delivered_when_its_disk_goes_on(
    idle_centre: WorkflowCentre, disk: StallingDisk
) -> None:
    git = Watched(idle_centre.git)
    async with working(idle_centre, git=git):
        cluster = await idle_centre.create("late", values={"replicas": 1})
        before = await asyncio.to_thread(idle_centre.git.head, cluster)
        disk.arm()
        await idle_centre.write(cluster, "late", values={"replicas": 2})
        assert await asyncio.to_thread(disk.stalled.wait, 60)
        await idle_centre.write(cluster, "late", values={"replicas": 1})
        await rests(idle_centre, cluster)
        assert git.under_way == 1, "the attempt that nobody waits for any more"
        await wakes(disk, git)
        await rests(idle_centre, cluster)
    assert b"replicas: 1" in await rendered(idle_centre, cluster)
    assert await asyncio.to_thread(idle_centre.git.head, cluster) == before


async def test_a_template_that_was_taken_back_is_not_delivered_when_its_disk_goes_on(
    idle_centre: WorkflowCentre, disk: StallingDisk
) -> None:
    """The cluster's own wish is the same all the time, and so is its change."""
    git = Watched(idle_centre.git)
    async with working(idle_centre, git=git):
        cluster = await idle_centre.create("late-template")
        before = await asyncio.to_thread(idle_centre.git.head, cluster)
        change = (await idle_centre.row(cluster)).change
        template = await idle_centre.ports.config.get(APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART)
        assert template is not None
        changed = {**template.body, "values": {**template.body["values"], "late": True}}

        async def put(body: Any) -> None:
            await idle_centre.ports.config.put(
                APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART, body, actor="token:test"
            )
            await idle_centre.fleet.nudge(cluster)

        disk.arm()
        await put(changed)
        assert await asyncio.to_thread(disk.stalled.wait, 60)
        await put(template.body)

        await eventually(lambda: is_told(idle_centre, cluster))
        await wakes(disk, git)
        await rests(idle_centre, cluster)
    assert (await idle_centre.row(cluster)).change == change
    assert b"late: " not in await rendered(idle_centre, cluster)
    assert await asyncio.to_thread(idle_centre.git.head, cluster) == before


async def freeze_a_secret(centre: WorkflowCentre, cluster: UUID, disk: StallingDisk) -> str:
    """Has a commit of a secret stall; returns the head that it is built upon."""
    before = await asyncio.to_thread(centre.git.head, cluster)
    assert before
    disk.arm()
    await stage(centre, cluster, "password")
    await centre.fleet.nudge(cluster)
    assert await asyncio.to_thread(disk.stalled.wait, 60)
    return before


async def fence_is_raised(centre: WorkflowCentre, cluster: UUID, above: int) -> bool:
    return await asyncio.to_thread(centre.git.fence_number, cluster) > above


async def test_a_secret_that_a_pause_has_overtaken_is_not_committed_when_its_disk_goes_on(
    idle_centre: WorkflowCentre, disk: StallingDisk
) -> None:
    git = Watched(idle_centre.git)
    async with working(idle_centre, git=git):
        cluster = await idle_centre.create("late-pause")
        number = await asyncio.to_thread(idle_centre.git.fence_number, cluster)
        before = await freeze_a_secret(idle_centre, cluster, disk)
        await idle_centre.fleet.pause(cluster, reason="storage", actor="token:test")
        await eventually(lambda: fence_is_raised(idle_centre, cluster, number))
        assert git.under_way == 1, "the attempt that began before the pause"
        await wakes(disk, git)
        assert await asyncio.to_thread(idle_centre.git.head, cluster) == before


async def test_a_secret_that_a_removal_has_overtaken_is_not_committed_when_its_disk_goes_on(
    idle_centre: WorkflowCentre, disk: StallingDisk
) -> None:
    git = Watched(idle_centre.git)
    async with working(idle_centre, git=git):
        cluster = await idle_centre.create("late-removal")
        before = await freeze_a_secret(idle_centre, cluster, disk)
        await idle_centre.wishes.request_removal(cluster, actor="token:test")
        await idle_centre.fleet.nudge(cluster)
        await idle_centre.until(cluster, at_phase(Phase.REMOVED))
        await idle_centre.until(cluster, lambda row: bool(row.projection and row.projection.done.removed))
        assert git.under_way >= 1, "the attempt that began before the removal"
        await wakes(disk, git)
        assert await asyncio.to_thread(idle_centre.git.head, cluster) == before


async def test_a_secret_that_a_deletion_has_overtaken_is_not_committed_when_its_disk_goes_on(
    idle_centre: WorkflowCentre, disk: StallingDisk
) -> None:
    """One that keeps the workloads commits nothing, and waits for the edge, which goes on fetching."""
    git = Watched(idle_centre.git)
    async with working(idle_centre, git=git):
        cluster = await idle_centre.create("late-deletion")
        await idle_centre.bootstrap(cluster)
        await rests(idle_centre, cluster)
        number = await asyncio.to_thread(idle_centre.git.fence_number, cluster)
        before = await freeze_a_secret(idle_centre, cluster, disk)
        await idle_centre.wishes.request_deletion(cluster, actor="token:test", workloads=Workloads.KEEP)
        await idle_centre.fleet.nudge(cluster)
        await idle_centre.until(cluster, at_step(StepName.AWAIT_GOODBYE))
        await eventually(lambda: fence_is_raised(idle_centre, cluster, number))
        assert git.under_way >= 1, "the attempt that began before the deletion"
        await wakes(disk, git)
        assert await asyncio.to_thread(idle_centre.git.head, cluster) == before


async def test_a_damaged_fence_holds_up_no_deletion(idle_centre: WorkflowCentre) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("damaged")
        await rests(idle_centre, cluster)
        (idle_centre.git.folder(cluster) / FENCE).write_text("not a number")
        await idle_centre.wishes.request_deletion(cluster, actor="token:test", force=True)
        await idle_centre.fleet.nudge(cluster)
        await idle_centre.until(cluster, at_phase(Phase.DELETED))
