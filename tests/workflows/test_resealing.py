"""Re-sealed values on their way into a repository: shown while they come, one commit, and never before a person's."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

from centre import WorkflowCentre, eventually, open_centre, working
from resealing_edge import ResealingEdge, answer, ask, certificate, certify, to_put
from temporalio.testing import ActivityEnvironment

from activities.composition import upkeep_of
from activities.repository import SecretActivities
from edgewright.domain.cluster import ConditionType
from edgewright.domain.kubernetes_names import secret_place
from edgewright.messages.steps import CommitSecrets, CommitSecretsResult
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.git_server import CommitSummary
from edgewright.ports.secret_staging import StagedState

DB = "default/db"


async def put(
    centre: WorkflowCentre, cluster: UUID, values: Mapping[str, bytes], number: int, secret: str = DB
) -> None:
    changes = to_put(cluster, secret, values, number)
    await centre.ports.staging.stage(changes)
    await centre.fleet.change_secrets(cluster, [changes[0].request])


async def stale(centre: WorkflowCentre, name: str, values: Mapping[str, bytes]) -> tuple[UUID, ResealingEdge]:
    """A cluster with a Secret that its edge's first key sealed, and the edge with a second key."""
    cluster = await centre.create(name)
    await certify(centre, cluster, 1)
    await put(centre, cluster, values, 1)
    await certify(centre, cluster, 2)
    return cluster, ResealingEdge(centre.git, cluster)


def sealing_key(row: ClusterRow) -> tuple[str, str, str]:
    assert row.projection
    [found] = [c for c in row.projection.conditions if c.type is ConditionType.SEALING_KEY_CURRENT]
    return found.status.value, found.reason, found.message


async def commit_once(centre: WorkflowCentre, cluster: UUID) -> CommitSecretsResult:
    """One run of the activity."""
    secrets = SecretActivities(centre.ports.directory, centre.ports.staging, centre.ports.git)
    result: CommitSecretsResult = await ActivityEnvironment().run(
        secrets.commit_secrets, CommitSecrets(cluster=cluster)
    )
    return result


async def log(centre: WorkflowCentre, cluster: UUID) -> list[CommitSummary]:
    return list(await asyncio.to_thread(centre.git.log, cluster, limit=50))


async def test_its_progress_is_shown_until_it_is_over(centre: WorkflowCentre) -> None:
    cluster, edge = await stale(centre, "progress", {"password": b"s3cr3t"})
    await put(centre, cluster, {"token": b"t"}, 1, "other/more")
    await ask(centre, cluster)
    shown = ("True", "Resealing", "0 of 2 Secrets are re-sealed.")
    await centre.until(cluster, lambda row: sealing_key(row) == shown)
    await answer(centre, edge, most=1)
    shown = ("True", "Resealing", "1 of 2 Secrets are re-sealed.")
    row = await centre.until(cluster, lambda row: sealing_key(row) == shown)
    assert row.projection and row.projection.resealing
    assert (row.projection.resealing.asked_by, row.projection.resealing.left) == ("token:ann", 1)
    await answer(centre, edge)
    edge.keys = [2]

    async def is_whole() -> bool:
        return edge.opened(DB) == {"password": b"s3cr3t"} and edge.opened("other/more") == {"token": b"t"}

    await eventually(is_whole)
    row = await centre.until(cluster, lambda row: sealing_key(row)[1] == "Current")
    assert row.projection and row.projection.resealing is None
    newest = (await log(centre, cluster))[0]
    await centre.until(cluster, lambda row: bool(row.projection and row.projection.desired_revision == newest.commit))


async def test_what_must_be_entered_again_is_shown_until_it_was(centre: WorkflowCentre) -> None:
    cluster, edge = await stale(centre, "unreadable", {"password": b"s3cr3t"})
    edge.keys = [3, 2]
    await ask(centre, cluster)
    await answer(centre, edge)
    row = await centre.until(cluster, lambda row: sealing_key(row)[:2] == ("False", "Unreadable"))
    assert "default/db/password" in sealing_key(row)[2]
    await put(centre, cluster, {"password": b"again"}, 2)
    assert cluster in await centre.directory.unfinished(), "the sweep nudges"
    await centre.fleet.nudge(cluster)
    await centre.until(cluster, lambda row: sealing_key(row)[1] == "Current")


async def test_what_a_person_has_written_goes_first_and_wins(idle_centre: WorkflowCentre) -> None:
    async with working(idle_centre):
        cluster, edge = await stale(idle_centre, "person-first", {"a": b"old", "b": b"old"})
    await ask(idle_centre, cluster)
    await answer(idle_centre, edge)
    await idle_centre.ports.staging.stage(to_put(cluster, DB, {"a": b"new"}, 2))
    before = len(await log(idle_centre, cluster))
    assert (await commit_once(idle_centre, cluster)).more
    assert edge.opened(DB) == {"a": b"new", "b": b"old"}
    assert not (await commit_once(idle_centre, cluster)).more
    [newest, persons, *_] = commits = await log(idle_centre, cluster)
    assert len(commits) == before + 2, "each can be reverted by itself"
    assert newest.message.startswith("Re-seal default/db/b\n")
    assert persons.message.startswith("Seal default/db/a\n")
    edge.keys = [2]
    assert edge.opened(DB) == {"a": b"new", "b": b"old"}


async def test_only_what_is_still_there_is_replaced(idle_centre: WorkflowCentre) -> None:
    async with working(idle_centre):
        cluster, edge = await stale(idle_centre, "still-there", {"a": b"1", "b": b"2"})
        await ask(idle_centre, cluster)
    await answer(idle_centre, edge)
    staged = (await idle_centre.ports.staging.pending(cluster)).changes
    gone = to_put(cluster, DB, {"a": b"new", "b": b"new"}, 2)
    await idle_centre.ports.staging.stage(gone)
    await commit_once(idle_centre, cluster)
    before = await log(idle_centre, cluster)
    assert (await commit_once(idle_centre, cluster)).commit is None
    assert await log(idle_centre, cluster) == before
    rows = await idle_centre.ports.staging.request(staged[0].request)
    assert {(row.state, row.ciphertext) for row in rows} == {(StagedState.SUPERSEDED, None)}


async def test_a_key_of_90_days_is_left_behind_without_being_asked(temporal: str, tmp_path: Path) -> None:
    ahead = timedelta()
    async with open_centre(tmp_path, temporal, clock=lambda: datetime.now(UTC) + ahead) as centre, working(centre):
        cluster, edge = await stale(centre, "old-key", {"password": b"s3cr3t"})
        resealings = centre.ports.resealings
        upkeep = upkeep_of(centre.ports, centre.fleet)
        ahead = certificate(1).not_before + timedelta(days=89, hours=23) - datetime.now(UTC)
        await upkeep.upkeep()
        assert await resealings.wanted(cluster, limit=9) == []
        ahead += timedelta(hours=2)
        await upkeep.upkeep()
        assert await resealings.wanted(cluster, limit=9) == [secret_place(DB)]
        assert await resealings.due() == []
        await answer(centre, edge)
        edge.keys = [2]

        async def is_whole() -> bool:
            return edge.opened(DB) == {"password": b"s3cr3t"}

        await eventually(is_whole)
        [asked] = [event for event in await centre.audit.timeline(cluster) if event.kind == "reseal.asked"]
        assert (asked.actor, asked.message.endswith("over 90 days old.")) == ("centre", True)
