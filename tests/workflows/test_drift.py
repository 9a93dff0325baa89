"""A repository is put back to an earlier copy, or the database is: the upkeep notices, and says what is lost."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from centre import WorkflowCentre, eventually, working
from cluster_states import is_told, stage

from activities import drift, upkeep
from activities.composition import upkeep_of
from edgewright.domain.cluster import ConditionStatus, ConditionType, Fence
from edgewright.domain.kubernetes_names import SecretReference
from edgewright.ports.audit import RecordedCommit
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.git_server import CommitMessage

DB = SecretReference("default", "db")


async def sweep(centre: WorkflowCentre) -> None:
    await upkeep_of(centre.ports, centre.fleet).upkeep()


async def told(centre: WorkflowCentre, cluster: UUID) -> list[str]:
    return [event.message for event in await centre.audit.timeline(cluster) if event.kind == "git.drifted"]


def is_current(row: ClusterRow) -> bool:
    return row.projection is not None and row.projection.change_done == row.change


@pytest.fixture
def every_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "UPKEEP_SLOTS", 1)


def drifted(row: ClusterRow) -> ConditionStatus | None:
    condition = row.projection.condition(ConditionType.DRIFTED) if row.projection else None
    return condition.status if condition else None


async def enter(centre: WorkflowCentre, cluster: UUID, key: str) -> None:
    """Writes a secret and waits until its commit has been published."""
    change = await stage(centre, cluster, key)
    await centre.fleet.change_secrets(cluster, [change.request])
    [committed] = await centre.ports.staging.request(change.request)
    await centre.until(
        cluster, lambda row: bool(row.projection and row.projection.desired_revision == committed.commit)
    )


@pytest.mark.usefixtures("every_slot")
async def test_a_repository_that_was_put_back_is_told_until_what_is_lost_was_entered_again(
    idle_centre: WorkflowCentre, tmp_path: Path
) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("put-back", values={"replicas": 1})
        await enter(idle_centre, cluster, "kept")
        folder, copy = idle_centre.git.folder(cluster), tmp_path / "copy"
        shutil.copytree(folder, copy)
        await idle_centre.write(cluster, "put-back", values={"replicas": 2})
        await idle_centre.until(cluster, is_current)
        await enter(idle_centre, cluster, "lost")
        await eventually(lambda: is_told(idle_centre, cluster))
        await sweep(idle_centre)
        assert await told(idle_centre, cluster) == []
        assert drifted(await idle_centre.row(cluster)) is None
        before = await asyncio.to_thread(idle_centre.git.head, cluster)
        assert before
        shutil.rmtree(folder)
        copy.rename(folder)

        await sweep(idle_centre)
        [message] = await told(idle_centre, cluster)
        assert message.startswith(f"The repository has lost 2 commits: {before[:12]}, ")
        assert "secret values: default/db/lost." in message

        async def is_delivered() -> bool:
            head = await asyncio.to_thread(idle_centre.git.head, cluster)
            assert head
            files = await asyncio.to_thread(idle_centre.git.list, cluster, "edo/cluster", at=head)
            return any(b"replicas: 2" in (idle_centre.git.read(cluster, path, at=head) or b"") for path in files)

        await eventually(is_delivered)
        row = await idle_centre.until(cluster, lambda row: drifted(row) is ConditionStatus.TRUE)
        assert row.must_reenter == (DB.at("lost"),)
        await eventually(lambda: is_told(idle_centre, cluster))
        await sweep(idle_centre)
        assert (await idle_centre.row(cluster)).drift == message, "it is lost still"

        await enter(idle_centre, cluster, "lost")
        await sweep(idle_centre)
        await idle_centre.until(cluster, lambda row: drifted(row) is ConditionStatus.FALSE)
        await sweep(idle_centre)
        assert await told(idle_centre, cluster) == [message]


@pytest.mark.usefixtures("every_slot")
async def test_a_put_back_is_noticed_although_something_was_committed_since(
    idle_centre: WorkflowCentre, tmp_path: Path
) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("committed-since")
        folder, copy = idle_centre.git.folder(cluster), tmp_path / "copy"
        shutil.copytree(folder, copy)
        await enter(idle_centre, cluster, "lost")
        shutil.rmtree(folder)
        copy.rename(folder)
        await enter(idle_centre, cluster, "new")
        await sweep(idle_centre)
        [message] = await told(idle_centre, cluster)
        assert "secret values: default/db/lost." in message


@pytest.mark.usefixtures("every_slot")
async def test_what_is_lost_is_told_whole_although_one_request_has_made_many_events(
    idle_centre: WorkflowCentre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drift, "LOOK_BACK", 3)
    async with working(idle_centre):
        cluster = await idle_centre.create("bulk")
        await enter(idle_centre, cluster, "kept")
        folder, copy = idle_centre.git.folder(cluster), tmp_path / "copy"
        shutil.copytree(folder, copy)
        keys = ["first", *"abcdef"]
        for key in keys:
            await enter(idle_centre, cluster, key)
        shutil.rmtree(folder)
        copy.rename(folder)
        await sweep(idle_centre)
        row = await idle_centre.row(cluster)
        assert set(row.must_reenter) == {DB.at(key) for key in keys}


def copy_of(centre: WorkflowCentre, cluster: UUID, kept: Path) -> Path:
    """Keeps the repository as it is now, to be put back later."""
    shutil.copytree(centre.git.folder(cluster), kept)
    return kept


def put_back(centre: WorkflowCentre, cluster: UUID, kept: Path) -> None:
    """Puts a copy of the copy in the repository's place, with as short a gap as can be."""
    folder = centre.git.folder(cluster)
    new, old = kept.with_suffix(".new"), kept.with_suffix(".old")
    shutil.copytree(kept, new)
    folder.rename(old)
    new.rename(folder)
    shutil.rmtree(old)


@pytest.mark.usefixtures("every_slot")
async def test_drift_ends_when_the_newer_copy_of_the_repository_is_put_back(
    idle_centre: WorkflowCentre, tmp_path: Path
) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("newer-copy")
        older = copy_of(idle_centre, cluster, tmp_path / "older")
        await enter(idle_centre, cluster, "returned")
        await eventually(lambda: is_told(idle_centre, cluster))
        newer = copy_of(idle_centre, cluster, tmp_path / "newer")
        put_back(idle_centre, cluster, older)
        await sweep(idle_centre)
        await idle_centre.until(cluster, lambda row: row.must_reenter == (DB.at("returned"),))
        await idle_centre.until(cluster, lambda row: drifted(row) is ConditionStatus.TRUE)

        put_back(idle_centre, cluster, newer)

        async def is_mended() -> bool:
            await sweep(idle_centre)
            return drifted(await idle_centre.row(cluster)) is ConditionStatus.FALSE

        await eventually(is_mended)
        assert (await idle_centre.row(cluster)).must_reenter == ()


@pytest.mark.usefixtures("every_slot")
async def test_a_second_put_back_to_an_older_copy_tells_what_more_is_lost(
    idle_centre: WorkflowCentre, tmp_path: Path
) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("twice")
        oldest = copy_of(idle_centre, cluster, tmp_path / "oldest")
        await enter(idle_centre, cluster, "first")
        older = copy_of(idle_centre, cluster, tmp_path / "older")
        await enter(idle_centre, cluster, "second")
        await idle_centre.wishes.set_paused(cluster, paused=True, reason="storage", actor="token:test")
        await idle_centre.fleet.nudge(cluster)
        await eventually(lambda: is_told(idle_centre, cluster))
        put_back(idle_centre, cluster, older)
        await sweep(idle_centre)
        assert (await idle_centre.row(cluster)).must_reenter == (DB.at("second"),)
        put_back(idle_centre, cluster, oldest)
        await sweep(idle_centre)
        await sweep(idle_centre)
        assert (await idle_centre.row(cluster)).must_reenter == (DB.at("first"), DB.at("second"))
        assert ["default/db/first" in message for message in await told(idle_centre, cluster)] == [False, True]


@pytest.mark.usefixtures("every_slot")
async def test_the_same_copy_put_back_again_is_rendered_again(idle_centre: WorkflowCentre, tmp_path: Path) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("again")
        copy = copy_of(idle_centre, cluster, tmp_path / "copy")
        await enter(idle_centre, cluster, "lost")

        async def is_rendered() -> bool:
            await sweep(idle_centre)
            row, head = await idle_centre.row(cluster), idle_centre.git.head(cluster)
            return row.projection is not None and row.projection.desired_revision == head

        for _ in range(2):
            put_back(idle_centre, cluster, copy)
            await eventually(is_rendered)
        assert len(await told(idle_centre, cluster)) == 1


@pytest.mark.usefixtures("every_slot")
async def test_a_rendering_that_only_the_row_remembers_is_missed_as_well(idle_centre: WorkflowCentre) -> None:
    """Its workflow would have told of it, but was put back to an older copy together with the repository."""
    async with working(idle_centre):
        cluster = await idle_centre.create("forgotten")
        await eventually(lambda: is_told(idle_centre, cluster))
    row = await idle_centre.row(cluster)
    fence = Fence(cluster=cluster, generation=row.generation, change=row.change)
    await idle_centre.steps.record_rendering(fence, "d2", [], commit="f" * 40)
    await sweep(idle_centre)
    [message] = await told(idle_centre, cluster)
    assert message.startswith(f"The repository has lost commit {'f' * 12}: ")

    async def is_mended() -> bool:
        await sweep(idle_centre)
        row, head = await idle_centre.row(cluster), idle_centre.git.head(cluster)
        return (row.rendered_commit, row.drift) == (head, "")

    async with working(idle_centre):
        await eventually(is_mended)


@pytest.mark.usefixtures("every_slot")
async def test_a_loss_is_seen_behind_many_events_of_one_commit(
    idle_centre: WorkflowCentre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drift, "LOOK_BACK", 2)
    async with working(idle_centre):
        cluster = await idle_centre.create("behind")
        copy = copy_of(idle_centre, cluster, tmp_path / "copy")
        await enter(idle_centre, cluster, "lost")
        put_back(idle_centre, cluster, copy)
        changes = [await stage(idle_centre, cluster, key) for key in "abc"]
        await idle_centre.fleet.change_secrets(cluster, [change.request for change in changes])
        await eventually(lambda: is_told(idle_centre, cluster))
        await sweep(idle_centre)
        assert (await idle_centre.row(cluster)).must_reenter == (DB.at("lost"),)


class EntersMeanwhile:
    """Steps between whose reading and recording somebody enters what is lost."""

    def __init__(self, centre: WorkflowCentre, cluster: UUID, key: str) -> None:
        self._centre, self._cluster, self._key = centre, cluster, key

    def __getattr__(self, name: str) -> Any:
        return getattr(self._centre.steps, name)

    async def recorded_commits(self, cluster: UUID, *, limit: int) -> Sequence[RecordedCommit]:
        found: Sequence[RecordedCommit] = await self._centre.steps.recorded_commits(cluster, limit=limit)
        await enter(self._centre, self._cluster, self._key)
        return found


async def test_what_is_entered_while_a_put_back_is_noticed_need_not_be_entered_again(
    idle_centre: WorkflowCentre, tmp_path: Path
) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("meanwhile")
        copy = copy_of(idle_centre, cluster, tmp_path / "copy")
        await enter(idle_centre, cluster, "lost")
        await enter(idle_centre, cluster, "too")
        put_back(idle_centre, cluster, copy)
        steps = EntersMeanwhile(idle_centre, cluster, "lost")
        assert await drift.note_drift(idle_centre.directory, steps, idle_centre.git, cluster) is None
        assert (await idle_centre.row(cluster)).must_reenter == ()
        assert await drift.note_drift(idle_centre.directory, idle_centre.steps, idle_centre.git, cluster)
        assert (await idle_centre.row(cluster)).must_reenter == (DB.at("too"),)


@pytest.mark.usefixtures("every_slot")
async def test_a_loss_that_reaches_behind_all_that_is_compared_says_that_more_may_be_lost(
    idle_centre: WorkflowCentre, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drift, "LOOK_BACK", 2)
    monkeypatch.setattr(drift, "FARTHEST", 2)
    async with working(idle_centre):
        cluster = await idle_centre.create("farthest")
        copy = copy_of(idle_centre, cluster, tmp_path / "copy")
        for key in "abc":
            await enter(idle_centre, cluster, key)
        put_back(idle_centre, cluster, copy)
        await sweep(idle_centre)
        [message] = await told(idle_centre, cluster)
        assert "More may be lost: only the newest 2 events of commits were compared." in message


@pytest.mark.usefixtures("every_slot")
async def test_an_older_database_is_noticed_once_and_mends(idle_centre: WorkflowCentre) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("older")
        head = await asyncio.to_thread(idle_centre.git.head, cluster)
        later = CommitMessage("Render older", actor="token:test", trailers=(("Edgewright-Fence", "1/99"),))
        await asyncio.to_thread(idle_centre.git.commit, cluster, {"edo/later": b"1"}, later, expected_head=head)
        await sweep(idle_centre)
        [message] = await told(idle_centre, cluster)
        assert message.startswith("The repository was written for change 99, and the database knows only of 1:")
        row = await idle_centre.until(cluster, lambda row: drifted(row) is ConditionStatus.TRUE)
        assert row.change > 99
        await sweep(idle_centre)
        await idle_centre.until(cluster, lambda row: drifted(row) is ConditionStatus.FALSE)
        assert await told(idle_centre, cluster) == [message]
