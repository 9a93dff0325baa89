"""What is refused is in no commit, and in none later: another committer may be about to make one."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from centre import WorkflowCentre, eventually, working
from staged_secrets import DiesBeforeItRecords, FrozenGitServer, committed_cluster, present_value, staged

from edgewright.adapters.git.bare import BareGitServer
from edgewright.application.committed_requests import LOOK_BACK, requests_named
from edgewright.application.secret_commits import SecretCommits
from edgewright.domain.kubernetes_names import SecretReference, secret_place
from edgewright.domain.secret_template import TemplateChange
from edgewright.errors import Waiting
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.git_server import CommitMessage, GitServer
from edgewright.ports.secret_staging import PendingChanges, StagedChange, StagedState

PLACE = "default/db/password"
Wish = Callable[[WorkflowCentre, UUID], Awaitable[object]]


async def to_new_hardware(centre: WorkflowCentre, cluster: UUID) -> None:
    await centre.wishes.request_recreation(cluster, actor="test", new_hardware=True)


async def removed(centre: WorkflowCentre, cluster: UUID) -> None:
    await centre.wishes.request_removal(cluster, actor="test")


async def being_deleted(centre: WorkflowCentre, cluster: UUID) -> None:
    await centre.wishes.request_deletion(cluster, actor="test")


WISHES: list[Wish] = [to_new_hardware, removed, being_deleted]


def committer(centre: WorkflowCentre, *, git: Any = None, staging: Any = None) -> SecretCommits:
    return SecretCommits(centre.ports.directory, staging or centre.ports.staging, git or centre.git)


async def outcome(centre: WorkflowCentre, cluster: UUID, request: UUID) -> StagedChange:
    [change] = await committer(centre).outcome(cluster, request)
    return change


async def committed_requests(centre: WorkflowCentre, cluster: UUID) -> set[UUID]:
    log = await asyncio.to_thread(centre.git.log, cluster, limit=100)
    return {request for commit in log for request in requests_named(commit)}


@pytest.mark.parametrize("wish", WISHES)
async def test_nobody_commits_what_was_told_to_be_refused(idle_centre: WorkflowCentre, wish: Wish) -> None:
    cluster = await committed_cluster(idle_centre, "told")
    change = staged(cluster, b"v")
    await idle_centre.ports.staging.stage([change])
    told: list[StagedChange] = []

    async def meanwhile() -> None:
        await wish(idle_centre, cluster)
        told.append(await outcome(idle_centre, cluster, change.request))

    made = await committer(idle_centre, git=FrozenGitServer(idle_centre.git, meanwhile)).commit(cluster)
    assert (told[0].state, made.commits) == (StagedState.REFUSED, {})
    assert await committed_requests(idle_centre, cluster) == set()
    assert await present_value(idle_centre, cluster) is None
    assert await outcome(idle_centre, cluster, change.request) == told[0]


@pytest.mark.parametrize("wish", WISHES)
async def test_what_was_committed_before_it_was_refused_is_told_as_committed(
    idle_centre: WorkflowCentre, wish: Wish
) -> None:
    """Its committer has not recorded that yet, or never will."""
    cluster = await committed_cluster(idle_centre, "before")
    change = staged(cluster, b"v")
    await idle_centre.ports.staging.stage([change])
    with pytest.raises(Waiting):
        await committer(idle_centre, staging=DiesBeforeItRecords(idle_centre.ports.staging)).commit(cluster)
    await wish(idle_centre, cluster)
    [row] = await idle_centre.ports.staging.request(change.request)
    assert row.state is StagedState.REFUSED
    told = await outcome(idle_centre, cluster, change.request)
    head = await asyncio.to_thread(idle_centre.git.head, cluster)
    assert (told.state, told.commit) == (StagedState.COMMITTED, head)


async def test_what_is_committed_is_found_behind_any_number_of_pushed_commits(idle_centre: WorkflowCentre) -> None:
    """One push may bring thousands."""
    cluster = await committed_cluster(idle_centre, "pushed")
    change = staged(cluster, b"v")
    await idle_centre.ports.staging.stage([change])
    with pytest.raises(Waiting):
        await committer(idle_centre, staging=DiesBeforeItRecords(idle_centre.ports.staging)).commit(cluster)
    made = await asyncio.to_thread(idle_centre.git.head, cluster)
    await asyncio.to_thread(push, idle_centre.git, cluster, LOOK_BACK + 1)
    await removed(idle_centre, cluster)
    told = await outcome(idle_centre, cluster, change.request)
    assert (told.state, told.commit) == (StagedState.COMMITTED, made)


async def test_nothing_is_told_to_be_refused_while_the_volume_of_the_repositories_is_not_mounted(
    idle_centre: WorkflowCentre, tmp_path: Path
) -> None:
    cluster = await committed_cluster(idle_centre, "unmounted")
    change = staged(cluster, b"v")
    await idle_centre.ports.staging.stage([change])
    with pytest.raises(Waiting):
        await committer(idle_centre, staging=DiesBeforeItRecords(idle_centre.ports.staging)).commit(cluster)
    await removed(idle_centre, cluster)
    with pytest.raises(Waiting) as unknown:
        await committer(idle_centre, git=BareGitServer(tmp_path)).outcome(cluster, change.request)
    assert unknown.value.code == "git_storage_empty"
    assert (await outcome(idle_centre, cluster, change.request)).state is StagedState.COMMITTED


def push(git: GitServer, cluster: UUID, commits: int) -> None:
    head = git.head(cluster)
    for number in range(commits):
        message, files = CommitMessage("Somebody's", "somebody"), {"by-hand/x": str(number).encode()}
        head = git.commit(cluster, files, message, expected_head=head)


async def test_a_fence_is_raised_once_for_all_who_ask(idle_centre: WorkflowCentre) -> None:
    """Whoever asks again and again would hold up the commits of everybody else."""
    cluster = await committed_cluster(idle_centre, "asks-again")
    change = staged(cluster, b"v")
    await idle_centre.ports.staging.stage([change])
    await to_new_hardware(idle_centre, cluster)
    await outcome(idle_centre, cluster, change.request)
    before = await asyncio.to_thread(idle_centre.git.fence_number, cluster)
    for _ in range(3):
        assert (await outcome(idle_centre, cluster, change.request)).state is StagedState.REFUSED
    assert await asyncio.to_thread(idle_centre.git.fence_number, cluster) == before


def labels_of(cluster: UUID, **labels: str | None) -> StagedChange:
    template = TemplateChange(labels=labels)
    return replace(staged(cluster, None), place=SecretReference("default", "db"), template=template)


class Unseen:
    """Staging of a committer that read what waits before one request was there."""

    def __init__(self, real: Any, request: UUID) -> None:
        self._real = real
        self._request = request

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def pending(self, cluster: UUID, *, limit: int) -> PendingChanges:
        found: PendingChanges = await self._real.pending(cluster, limit=limit)
        seen = [change for change in found.changes if change.request != self._request]
        return replace(found, changes=seen)


async def test_nobody_commits_what_a_committer_has_refused(idle_centre: WorkflowCentre) -> None:
    """One has read the Secret that another change labels, the other has not."""
    cluster = await committed_cluster(idle_centre, "labels")
    staging = idle_centre.ports.staging
    value = staged(cluster, b"v")
    labels = labels_of(cluster, a="b")
    await staging.stage([value])
    await staging.stage([labels])

    async def meanwhile() -> None:
        await committer(idle_centre, staging=Unseen(staging, value.request)).commit(cluster)
        [row] = await staging.request(labels.request)
        assert row.state is StagedState.REFUSED

    made = await committer(idle_centre, git=FrozenGitServer(idle_centre.git, meanwhile)).commit(cluster)
    assert set(made.commits) == {value.request}
    assert await committed_requests(idle_centre, cluster) == {value.request}
    [row] = await staging.request(labels.request)
    assert row.state is StagedState.REFUSED


class RefusedBeforeItRecords:
    """Staging of a committer before whose record a wish refuses what it has committed, and somebody asks."""

    def __init__(self, real: Any, meanwhile: Callable[[], Awaitable[None]]) -> None:
        self._real = real
        self._meanwhile = meanwhile

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def committed(self, *requests: Any, **more: Any) -> None:
        await self._meanwhile()
        await self._real.committed(*requests, **more)


async def test_what_changes_nothing_is_in_no_commit_and_stays_refused(idle_centre: WorkflowCentre) -> None:
    cluster = await committed_cluster(idle_centre, "nothing")
    staging = idle_centre.ports.staging
    await staging.stage([staged(cluster, b"v")])
    await committer(idle_centre).commit(cluster)
    labels = labels_of(cluster, absent=None)
    await staging.stage([labels])
    told: list[StagedChange] = []

    async def meanwhile() -> None:
        await removed(idle_centre, cluster)
        told.append(await outcome(idle_centre, cluster, labels.request))

    made = await committer(idle_centre, staging=RefusedBeforeItRecords(staging, meanwhile)).commit(cluster)
    assert (told[0].state, made.commits) == (StagedState.REFUSED, {})
    assert await outcome(idle_centre, cluster, labels.request) == told[0]


class AwaitsItsRefusal:
    """Staging of a committer that has overtaken the others, and is frozen before it records what it refuses."""

    def __init__(self, real: Any, meanwhile: Callable[[Callable[[], Awaitable[None]]], Awaitable[None]]) -> None:
        self._real = real
        self._meanwhile = meanwhile

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    async def refuse(self, request: UUID, code: str, reason: str) -> None:
        await self._meanwhile(partial(self._real.refuse, request, code, reason))


async def test_nobody_commits_what_was_read_between_overtaking_and_refusing(idle_centre: WorkflowCentre) -> None:
    """The refusal of a committer does not change the row: a fence of that row may be older than the refusal."""
    cluster = await committed_cluster(idle_centre, "between")
    staging = idle_centre.ports.staging
    value, labels = staged(cluster, b"v"), labels_of(cluster, a="b")
    await staging.stage([labels])
    told: list[StagedChange] = []

    async def frozen(refuse: Callable[[], Awaitable[None]]) -> None:
        await staging.stage([value])  # with it, another committer takes the labels

        async def meanwhile() -> None:
            await refuse()
            told.append(await outcome(idle_centre, cluster, labels.request))

        await committer(idle_centre, git=FrozenGitServer(idle_centre.git, meanwhile)).commit(cluster)

    await committer(idle_centre, staging=AwaitsItsRefusal(staging, frozen)).commit(cluster)
    assert told[0].state is StagedState.REFUSED
    assert await committed_requests(idle_centre, cluster) == {value.request}
    assert await outcome(idle_centre, cluster, labels.request) == told[0]


async def test_what_cannot_be_committed_is_refused_before_anything_newer_is_committed(
    idle_centre: WorkflowCentre,
) -> None:
    """It would count as replaced by a newer value, or be committed after it if the committer died in between."""
    cluster = await committed_cluster(idle_centre, "older")
    staging = idle_centre.ports.staging
    older = replace(staged(cluster, b"old"), template=TemplateChange(type="kubernetes.io/tls"))
    newer = staged(cluster, b"new")
    await staging.stage([older])
    await staging.stage([newer])
    with pytest.raises(Waiting):
        await committer(idle_centre, staging=DiesBeforeItRecords(staging)).commit(cluster)
    told = await outcome(idle_centre, cluster, older.request)
    assert (told.state, told.refusal_code) == (StagedState.REFUSED, "secret_keys_missing")
    assert set((await committer(idle_centre).commit(cluster)).commits) == {newer.request}
    assert await outcome(idle_centre, cluster, older.request) == told


class FrozenAfterTheRow:
    """The directory of a committer that is frozen between reading the row and what is staged, once."""

    def __init__(self, real: Any, meanwhile: Callable[[], Awaitable[None]]) -> None:
        self._real = real
        self._meanwhile: Callable[[], Awaitable[None]] | None = meanwhile

    async def get(self, cluster: UUID) -> ClusterRow | None:
        row: ClusterRow | None = await self._real.get(cluster)
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        return row


async def test_a_value_for_new_hardware_is_not_committed_in_the_name_of_the_old(idle_centre: WorkflowCentre) -> None:
    """By the generation in a commit, a restore knows what a move has taken away."""
    cluster = await committed_cluster(idle_centre, "in-between")
    change = replace(staged(cluster, b"v"), generation=2)

    async def meanwhile() -> None:
        await to_new_hardware(idle_centre, cluster)
        await idle_centre.ports.staging.stage([change])

    directory: Any = FrozenAfterTheRow(idle_centre.ports.directory, meanwhile)
    made = await SecretCommits(directory, idle_centre.ports.staging, idle_centre.git).commit(cluster)
    assert set(made.commits) == {change.request}
    [newest] = await asyncio.to_thread(idle_centre.git.log, cluster, limit=1)
    assert "\nEdgewright-Fence: 2/2\n" in newest.message


async def test_what_is_staged_after_a_recreation_is_not_refused_for_the_removal(
    idle_centre: WorkflowCentre,
) -> None:
    cluster = await committed_cluster(idle_centre, "anew")
    change = staged(cluster, b"v")
    await removed(idle_centre, cluster)

    async def meanwhile() -> None:
        await idle_centre.write(cluster, "anew")
        await idle_centre.ports.staging.stage([change])

    directory: Any = FrozenAfterTheRow(idle_centre.ports.directory, meanwhile)
    made = await SecretCommits(directory, idle_centre.ports.staging, idle_centre.git).commit(cluster)
    assert set(made.commits) == {change.request}


async def test_a_value_for_the_old_hardware_that_is_recorded_late_is_entered_again_all_the_same(
    idle_centre: WorkflowCentre,
) -> None:
    cluster = await committed_cluster(idle_centre, "late")
    change = staged(cluster, b"v")
    await idle_centre.ports.staging.stage([change])
    with pytest.raises(Waiting):
        await committer(idle_centre, staging=DiesBeforeItRecords(idle_centre.ports.staging)).commit(cluster)
    await to_new_hardware(idle_centre, cluster)

    async def must_reenter() -> bool:
        row = await idle_centre.directory.get(cluster)
        return row is not None and secret_place(PLACE) in row.must_reenter

    async with working(idle_centre):
        await idle_centre.fleet.nudge(cluster)
        await eventually(must_reenter)
    assert (await outcome(idle_centre, cluster, change.request)).state is StagedState.COMMITTED
    assert await must_reenter()
