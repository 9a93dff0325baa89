"""The end of a run: everything is carried over, everybody is answered, nothing is done twice."""

import asyncio
import time
from collections import Counter
from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from centre import WorkflowCentre, eventually, working
from cluster_states import at_phase, at_step, is_told, kinds, stage, staged, states

from edgewright.application.committed_requests import requests_named
from edgewright.domain.cluster import ConditionStatus, ConditionType, Phase, StepName
from edgewright.messages import names
from edgewright.ports.fleet import FleetUnavailable
from edgewright.ports.git_server import CommitId, CommitMessage, WriterFence
from edgewright.ports.secret_staging import StagedState
from workflows import policies


@pytest.fixture
def short_runs(patchable: pytest.MonkeyPatch) -> None:
    """Runs continue as new after few events."""
    patchable.setattr(policies, "HISTORY_LIMIT", 60)


async def runs(centre: WorkflowCentre, cluster: UUID) -> int:
    """How many runs the cluster's workflow has had; visibility is a little late."""
    query = f"WorkflowId = '{names.workflow_id(cluster)}'"
    return (await centre.client.count_workflows(query)).count


@pytest.mark.usefixtures("short_runs")
async def test_two_hundred_secrets_through_many_runs_are_committed_once_each(idle_centre: WorkflowCentre) -> None:
    async with working(idle_centre):
        centre, cluster = idle_centre, await idle_centre.create("many-runs")
        changes = [staged(cluster, f"s{number % 10}", f"key-{number}") for number in range(200)]
        left = iter(changes)

        async def write() -> None:
            for change in left:
                await centre.ports.staging.stage([change])
                await centre.fleet.change_secrets(cluster, [change.request])

        async def disturb() -> None:
            """As fast as the machine can follow: no run ends while signals come faster than its last task does."""
            while True:
                began = time.monotonic()
                with suppress(FleetUnavailable):
                    await centre.fleet.nudge(cluster)
                    await centre.fleet.readiness(cluster)
                await asyncio.sleep(max(0.05, time.monotonic() - began))

        disturbing = asyncio.create_task(disturb())
        await asyncio.gather(*(write() for _ in range(8)))
        disturbing.cancel()
        assert await states(centre, changes) == {StagedState.COMMITTED: 200}
        log = await asyncio.to_thread(centre.git.log, cluster, limit=500)
        named = Counter(request for commit in log for request in requests_named(commit))
        assert named == {change.request: 1 for change in changes}
        await eventually(lambda: has_runs(centre, cluster, 4))
        row = await centre.row(cluster)
        assert row.projection and row.projection.ready and row.projection.done.commissioning == 1
        assert (await kinds(centre, cluster)).count("phase.changed") == 1


async def has_runs(centre: WorkflowCentre, cluster: UUID, number: int) -> bool:
    return await runs(centre, cluster) >= number


@pytest.mark.usefixtures("short_runs")
async def test_a_verb_is_answered_at_once_and_applied_once_whenever_the_run_ends(idle_centre: WorkflowCentre) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("verbs-and-runs")
        for number in range(25):  # each raises unless it is answered within policies.VERB_WAIT
            answer = await idle_centre.fleet.pause(cluster, reason=f"shift {number}", actor="token:test")
            assert answer.status_of(ConditionType.PAUSED) is ConditionStatus.TRUE
            answer = await idle_centre.fleet.resume(cluster, actor="token:test")
            assert answer.status_of(ConditionType.PAUSED) is ConditionStatus.FALSE
        await eventually(lambda: has_runs(idle_centre, cluster, 4))
        told = Counter(event.message for event in await idle_centre.audit.timeline(cluster))
        assert [number for message, number in told.items() if "shift" in message and number != 1] == []


async def nudged_into_the_next_run(centre: WorkflowCentre, cluster: UUID) -> None:
    """Nudges until the present run has continued as new; with pauses, for no run ends while signals pour in."""
    before = (await centre.handle(cluster).describe()).run_id

    async def another() -> bool:
        await centre.fleet.nudge(cluster)
        await asyncio.sleep(0.15)
        return (await centre.handle(cluster).describe()).run_id != before

    await eventually(another)


@pytest.mark.usefixtures("short_runs")
async def test_steps_and_residue_of_a_deletion_are_carried_into_the_next_run(idle_centre: WorkflowCentre) -> None:
    async with working(idle_centre):
        centre, cluster = idle_centre, await idle_centre.create("carried")
        await centre.bootstrap(cluster)
        await centre.wishes.request_deletion(cluster, actor="token:test")
        await centre.fleet.nudge(cluster)
        await centre.until(cluster, at_step(StepName.AWAIT_EMPTY))
        await centre.fleet.skip_step(cluster, StepName.AWAIT_EMPTY, reason="scrapped", actor="token:test")
        row = await centre.until(cluster, at_step(StepName.AWAIT_GOODBYE))
        assert row.projection
        for _ in range(2):
            await nudged_into_the_next_run(centre, cluster)
        answer = await centre.fleet.readiness(cluster)
        assert answer.steps == row.projection.steps
        assert [residue.reason for residue in answer.residue] == ["scrapped"]
        assert answer.done == row.projection.done
        await centre.fleet.skip_step(cluster, StepName.AWAIT_GOODBYE, reason="gone", actor="token:test")
        row = await centre.until(cluster, at_phase(Phase.DELETED))
        assert row.projection and [residue.reason for residue in row.projection.residue] == ["scrapped", "gone"]
        assert Counter(await kinds(centre, cluster))["step.skipped"] == 2


@pytest.mark.usefixtures("short_runs")
async def test_a_pause_holds_secrets_through_the_end_of_a_run(idle_centre: WorkflowCentre) -> None:
    async with working(idle_centre):
        centre, cluster = idle_centre, await idle_centre.create("paused-runs")
        await centre.fleet.pause(cluster, reason="shift change", actor="token:test")
        change = await stage(centre, cluster, "held")
        waiting = asyncio.create_task(centre.fleet.change_secrets(cluster, [change.request]))
        for _ in range(2):
            await nudged_into_the_next_run(centre, cluster)
        assert await states(centre, [change]) == {StagedState.STAGED: 1}
        assert not waiting.done()
        await centre.fleet.resume(cluster, actor="token:test")
        await waiting
        assert await states(centre, [change]) == {StagedState.COMMITTED: 1}


async def test_a_secret_that_waits_for_the_end_of_a_pause_is_committed_though_the_run_ends_with_it(
    idle_centre: WorkflowCentre, patchable: pytest.MonkeyPatch
) -> None:
    """The commit begins in the moment in which the run ends; it must not be the last word of that run."""
    async with working(idle_centre):
        centre, cluster = idle_centre, await idle_centre.create("last-moment")
        await centre.fleet.pause(cluster, reason="shift change", actor="token:test")
        change = await stage(centre, cluster, "held")
        await centre.fleet.nudge(cluster)
        await eventually(lambda: is_told(centre, cluster))
        before = await current_run(centre, cluster)
        # What it has decided so far stays true, should it be replayed: it was not full then.
        length = (await centre.handle(cluster).describe()).history_length
        patchable.setattr(policies, "HISTORY_LIMIT", length + 1)
        await centre.fleet.resume(cluster, actor="token:test")
        assert await current_run(centre, cluster) != before

        async def committed() -> bool:
            return await states(centre, [change]) == {StagedState.COMMITTED: 1}

        await eventually(committed)


async def test_a_paused_cluster_for_which_a_secret_waits_can_be_deleted(idle_centre: WorkflowCentre) -> None:
    """The last run ends while the lane of secrets, let go at last, begins a round."""
    async with working(idle_centre):
        centre, cluster = idle_centre, await idle_centre.create("paused-and-gone")
        await centre.fleet.pause(cluster, reason="shift change", actor="token:test")
        change = await stage(centre, cluster, "held")
        await centre.fleet.nudge(cluster)
        await eventually(lambda: is_told(centre, cluster))
        await centre.wishes.request_deletion(cluster, actor="token:test")
        await centre.fleet.nudge(cluster)
        await asyncio.wait_for(centre.handle(cluster).result(), timeout=90)
        assert await states(centre, [change]) == {StagedState.REFUSED: 1}


COMMIT_SECONDS = 14.0
"""Longer than any verb is waited for, shorter than an attempt at a commit may take."""


class SlowCommits:
    """Git whose commits take long while it is slow."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.slow = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def commit(
        self,
        repository: UUID,
        changes: dict[str, bytes | None],
        message: CommitMessage,
        *,
        expected_head: CommitId | None,
        fence: WriterFence | None = None,
    ) -> CommitId:
        until = time.monotonic() + COMMIT_SECONDS
        while self.slow and time.monotonic() < until:
            time.sleep(0.05)
        commit: CommitId = self._real.commit(repository, changes, message, expected_head=expected_head, fence=fence)
        return commit


@pytest.mark.usefixtures("short_runs")
async def test_a_slow_commit_does_not_hold_up_verbs_at_the_end_of_a_run(idle_centre: WorkflowCentre) -> None:
    git = SlowCommits(idle_centre.git)
    async with working(idle_centre, git=git):
        centre, cluster = idle_centre, await idle_centre.create("slow-runs")
        git.slow = True
        change = await stage(centre, cluster, "slow")
        waiting = asyncio.create_task(centre.fleet.change_secrets(cluster, [change.request]))
        nudging = asyncio.create_task(nudged_into_the_next_run(centre, cluster))
        while not nudging.done():  # a verb that the commit holds up is not answered in time, and raises
            await centre.fleet.pause(cluster, reason="storage", actor="token:test")
        git.slow = False
        await centre.fleet.resume(cluster, actor="token:test")
        await waiting
        log = await asyncio.to_thread(centre.git.log, cluster, limit=10)
        assert sum(str(change.request) in commit.message for commit in log) == 1


@pytest.mark.usefixtures("short_runs")
async def test_a_commit_that_the_last_run_had_no_time_to_tell_of_is_published_by_the_next(
    idle_centre: WorkflowCentre, patchable: pytest.MonkeyPatch
) -> None:
    patchable.setattr(policies, "TELL_OF_COMMITS", timedelta(minutes=5))
    async with working(idle_centre):
        cluster = await idle_centre.create("untold")
        await eventually(lambda: is_told(idle_centre, cluster))
        heads, seen = list[CommitId | None](), {await current_run(idle_centre, cluster)}
        while len(seen) < 3:  # one of them began and ended among these commits
            change = await stage(idle_centre, cluster, f"late-{len(heads)}")
            await idle_centre.fleet.change_secrets(cluster, [change.request])
            heads.append(await asyncio.to_thread(idle_centre.git.head, cluster))
            seen.add(await current_run(idle_centre, cluster))

        async def told() -> bool:
            return await published_revision(idle_centre, cluster) in heads

        await eventually(told)


async def current_run(centre: WorkflowCentre, cluster: UUID) -> str:
    handle = centre.client.get_workflow_handle(names.workflow_id(cluster))
    return str((await handle.describe()).run_id)


async def published_revision(centre: WorkflowCentre, cluster: UUID) -> CommitId | None:
    row = await centre.row(cluster)
    return row.projection.desired_revision if row.projection else None
