"""Gateways and the worker commit the same staged secrets: each is committed once, and the newest value stays."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from centre import WorkflowCentre, eventually, working
from cluster_states import has_commits, is_told
from staged_secrets import DiesBeforeItRecords, FrozenGitServer, committed_cluster, present_value, staged

from api.secret_lane import MOST_CHANGES
from edgewright.application import secret_commits
from edgewright.application.secret_commits import BATCH, CommittedSecrets, SecretCommits
from edgewright.domain.kubernetes_names import SecretKey
from edgewright.errors import Waiting
from edgewright.ports.git_server import CommitId, CommitMessage
from edgewright.ports.secret_staging import StagedState


def committer(centre: WorkflowCentre, *, git: Any = None, staging: Any = None) -> SecretCommits:
    return SecretCommits(centre.ports.directory, staging or centre.ports.staging, git or centre.git)


async def commit(centre: WorkflowCentre, cluster: UUID, **more: Any) -> CommittedSecrets:
    return await committer(centre).commit(cluster, **more)


async def dies(centre: WorkflowCentre, cluster: UUID) -> CommitId:
    """The commit that nobody has recorded."""
    with pytest.raises(Waiting):
        await committer(centre, staging=DiesBeforeItRecords(centre.ports.staging)).commit(cluster)
    return await head_of(centre, cluster)


async def head_of(centre: WorkflowCentre, cluster: UUID) -> CommitId:
    head = await asyncio.to_thread(centre.git.head, cluster)
    assert head
    return head


async def state(centre: WorkflowCentre, request: UUID) -> tuple[StagedState, str | None]:
    [row] = await centre.ports.staging.request(request)
    return row.state, row.commit


async def pushed(centre: WorkflowCentre, cluster: UUID) -> CommitId:
    """Somebody else's commit on the head."""
    head = await head_of(centre, cluster)
    files = {"by-hand/x": head.encode()}
    return await asyncio.to_thread(centre.git.commit, cluster, files, CommitMessage("x", "x"), expected_head=head)


async def test_what_a_dead_gateway_has_just_committed_is_recorded_and_not_done_again(
    idle_centre: WorkflowCentre,
) -> None:
    """However young it is: what is there already would be recorded as part of whatever commit came last."""
    cluster = await committed_cluster(idle_centre, "dead-gateway")
    staging = idle_centre.ports.staging
    await staging.stage([staged(cluster, b"v")])
    await commit(idle_centre, cluster)
    deleted = staged(cluster, None)
    await staging.stage([deleted])
    made = await dies(idle_centre, cluster)
    head = await pushed(idle_centre, cluster)
    assert await state(idle_centre, deleted.request) == (StagedState.STAGED, None)
    assert (await commit(idle_centre, cluster)).commits == {deleted.request: made}
    assert await state(idle_centre, deleted.request) == (StagedState.COMMITTED, made)
    assert await head_of(idle_centre, cluster) == head


async def test_a_clock_that_is_wrong_hides_no_commit(idle_centre: WorkflowCentre) -> None:
    """That of the gateway that has sealed."""
    cluster = await committed_cluster(idle_centre, "clocks")
    change = staged(cluster, b"v")
    change = replace(change, sealed_at=change.sealed_at + timedelta(hours=2))
    await idle_centre.ports.staging.stage([change])
    made = await dies(idle_centre, cluster)
    assert (await commit(idle_centre, cluster)).commits == {change.request: made}


async def test_an_unrecorded_value_is_not_committed_over_a_newer_one(idle_centre: WorkflowCentre) -> None:
    cluster = await committed_cluster(idle_centre, "unrecorded")
    first, second = staged(cluster, b"old"), staged(cluster, b"new")
    await idle_centre.ports.staging.stage([first])
    made = await dies(idle_centre, cluster)
    await idle_centre.ports.staging.stage([second])
    newer = (await commit(idle_centre, cluster)).commits[second.request]
    assert await present_value(idle_centre, cluster) == second.ciphertext
    assert await state(idle_centre, first.request) == (StagedState.COMMITTED, made)
    assert await state(idle_centre, second.request) == (StagedState.COMMITTED, newer)


async def test_what_another_process_commits_after_it_was_staged_is_found(idle_centre: WorkflowCentre) -> None:
    """The head before it was staged is known: only what came after that is searched."""
    cluster = await committed_cluster(idle_centre, "another")
    await idle_centre.ports.staging.stage([staged(cluster, b"v")])
    await commit(idle_centre, cluster)
    before = await head_of(idle_centre, cluster)
    deleted = staged(cluster, None)
    await idle_centre.ports.staging.stage([deleted])
    made = await dies(idle_centre, cluster)
    await pushed(idle_centre, cluster)
    found = await commit(idle_centre, cluster, staged_on={deleted.request: before})
    assert found.commits == {deleted.request: made}
    assert await state(idle_centre, deleted.request) == (StagedState.COMMITTED, made)


async def test_a_gateway_leaves_a_long_log_to_the_worker(
    idle_centre: WorkflowCentre, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking through it takes processor time that would be everybody's: one push may bring any number of commits."""
    monkeypatch.setattr(secret_commits, "SHORT_LOOK", 9)
    cluster = await committed_cluster(idle_centre, "long-log")
    change = staged(cluster, b"v")
    await idle_centre.ports.staging.stage([change])
    made = await dies(idle_centre, cluster)
    for _ in range(9):
        await pushed(idle_centre, cluster)
    with pytest.raises(Waiting) as too_long:
        await commit(idle_centre, cluster, most=MOST_CHANGES)
    assert too_long.value.code == "long_log"
    assert (await commit(idle_centre, cluster)).commits == {change.request: made}


async def test_what_waits_behind_a_small_request_is_not_forgotten(idle_centre: WorkflowCentre) -> None:
    cluster = await committed_cluster(idle_centre, "behind-a-small-one")
    small, large = staged(cluster, b"v"), uuid4()
    change = staged(cluster, b"v")
    await idle_centre.ports.staging.stage([small])
    await idle_centre.ports.staging.stage(
        [replace(change, request=large, place=SecretKey("default", f"s{n}", "k")) for n in range(BATCH + 1)]
    )
    first = await commit(idle_centre, cluster)
    assert (list(first.commits), first.more) == ([small.request], True)
    assert list((await commit(idle_centre, cluster)).commits) == [large]


async def test_what_was_staged_on_the_present_head_is_not_searched_for(idle_centre: WorkflowCentre) -> None:
    cluster = await committed_cluster(idle_centre, "on-the-head")
    change = staged(cluster, b"v")
    head = await head_of(idle_centre, cluster)
    await idle_centre.ports.staging.stage([change])

    class Unread(FrozenGitServer):
        def log(self, *_: object, **__: object) -> None:
            raise AssertionError("nothing can have been committed since")

    async def nothing() -> None:
        return None

    made = await committer(idle_centre, git=Unread(idle_centre.git, nothing)).commit(
        cluster, staged_on={change.request: head}
    )
    assert set(made.commits) == {change.request}


async def known_to_the_workflow(centre: WorkflowCentre, cluster: UUID, commit: CommitId) -> None:
    """Returns when the workflow has published it as the newest commit of the centre."""
    await centre.until(cluster, lambda row: bool(row.projection and row.projection.desired_revision == commit))
    await eventually(lambda: is_told(centre, cluster))


async def put(centre: WorkflowCentre, cluster: UUID, key: str) -> CommitId:
    """Stages and commits a secret as a gateway does, and nudges."""
    change = replace(staged(cluster, b"v"), place=SecretKey("default", key, "k"))
    await centre.ports.staging.stage([change])
    made = (await commit(centre, cluster)).commits[change.request]
    await centre.fleet.nudge(cluster)
    return made


async def test_the_workflow_knows_the_newest_commit_whoever_has_made_it(centre: WorkflowCentre) -> None:
    cluster = await centre.create("newest")
    gateways = await put(centre, cluster, "one")
    await known_to_the_workflow(centre, cluster, gateways)
    await centre.write(cluster, "newest", values={"marker": "later"})
    await eventually(lambda: has_commits(centre, cluster, 3))
    steps = await head_of(centre, cluster)
    await known_to_the_workflow(centre, cluster, steps)
    await centre.fleet.nudge(cluster)
    await known_to_the_workflow(centre, cluster, steps)
    again = await put(centre, cluster, "two")
    head = await pushed(centre, cluster)
    await known_to_the_workflow(centre, cluster, again)
    assert await head_of(centre, cluster) == head


async def test_a_commit_of_the_worker_is_not_taken_for_newer_than_the_gateways_after_it(
    centre: WorkflowCentre,
) -> None:
    """The workflow tells of its own commits a moment later, together."""
    cluster = await centre.create("in-between")
    for number in range(5):
        change = replace(staged(cluster, b"v"), place=SecretKey("default", f"w{number}", "k"))
        await centre.ports.staging.stage([change])
        await centre.fleet.change_secrets(cluster, [change.request])
        await known_to_the_workflow(centre, cluster, await put(centre, cluster, f"g{number}"))
        await asyncio.sleep(0.5)  # by then, the workflow has told of all that it knows
        await known_to_the_workflow(centre, cluster, await head_of(centre, cluster))


async def test_a_workflow_that_has_lost_its_history_finds_the_newest_commit(idle_centre: WorkflowCentre) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("lost")
        await eventually(lambda: is_told(idle_centre, cluster))
    await idle_centre.handle(cluster).terminate()
    made = await put(idle_centre, cluster, "one")
    async with working(idle_centre):
        await known_to_the_workflow(idle_centre, cluster, made)
