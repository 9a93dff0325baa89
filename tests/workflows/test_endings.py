"""Removal, recreation, deletion: by every door, and nothing comes back."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from centre import WorkflowCentre, eventually, working
from sealing_keys import certificate_pem, private_key

from edgewright.application.repository_ahead import REMOVAL_TRAILER
from edgewright.domain.cluster import CredentialState, Phase, StepName, StepState, Workloads
from edgewright.domain.ended import Purge
from edgewright.domain.kubernetes_names import SecretKey, SecretReference
from edgewright.domain.wellknown import (
    APP_CLUSTER_CONFIGURATION,
    APP_CLUSTER_SETUP_STATUS,
    APP_CLUSTER_STATUS,
    APP_GIT_REPOSITORY,
    APP_SPARKPLUG_ADDRESS,
)
from edgewright.errors import Conflict, Gone, Waiting
from edgewright.messages import names
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.secret_staging import StagedChange, StagedState
from edgewright.sealing import Plaintext, Scope, parse_certificate, seal


async def has_entry(centre: WorkflowCentre, app: UUID, cluster: UUID) -> bool:
    return await centre.ports.config.get(app, cluster) is not None


async def ended(centre: WorkflowCentre, cluster: UUID) -> bool:
    status = (await centre.handle(cluster).describe()).status
    return status is not None and status.name == "COMPLETED"


def phase(expected: Phase) -> Any:
    def holds(row: ClusterRow) -> bool:
        return row.projection is not None and row.projection.phase is expected

    return holds


def at_step(step: StepName) -> Any:
    def holds(row: ClusterRow) -> bool:
        records = row.projection.steps if row.projection else ()
        return any(record.name is step and record.state is StepState.RUNNING for record in records)

    return holds


async def delete_by_http(centre: WorkflowCentre, cluster: UUID) -> None:
    await centre.wishes.request_deletion(cluster, actor="token:test")
    await centre.fleet.nudge(cluster)


async def delete_by_signal(centre: WorkflowCentre, cluster: UUID) -> None:
    await centre.handle(cluster).signal(names.SIGNAL_DELETE)


DOORS = [delete_by_http, delete_by_signal]


@pytest.mark.parametrize("delete", DOORS)
async def test_a_cluster_that_never_was_bootstrapped_is_gone_at_once(centre: WorkflowCentre, delete: Any) -> None:
    cluster = await centre.create("gone")
    await delete(centre, cluster)
    await centre.until(cluster, phase(Phase.DELETED))
    await eventually(lambda: ended(centre, cluster))
    for app in (APP_CLUSTER_CONFIGURATION, APP_CLUSTER_SETUP_STATUS, APP_SPARKPLUG_ADDRESS, APP_GIT_REPOSITORY):
        assert not await has_entry(centre, app, cluster)
    assert await centre.ports.accounts.of_cluster(cluster) == []
    assert not await asyncio.to_thread(centre.git.exists, cluster)
    assert await centre.directory.find("gone") is None
    events = [event.kind for event in await centre.audit.timeline(cluster)]
    assert events[0] == "cluster.created"
    assert "cluster.deletion_requested" in events


async def test_nothing_brings_a_deleted_cluster_back(centre: WorkflowCentre) -> None:
    cluster = await centre.create("never-again")
    await delete_by_signal(centre, cluster)
    await eventually(lambda: ended(centre, cluster))
    await centre.fleet.nudge(cluster)
    await eventually(lambda: ended(centre, cluster))
    assert cluster not in await centre.directory.open_clusters()
    assert cluster not in await centre.directory.unfinished()
    with pytest.raises(Gone):
        await centre.write(cluster, "never-again")
    assert not await has_entry(centre, APP_CLUSTER_SETUP_STATUS, cluster)


async def test_the_name_is_free_after_a_deletion(centre: WorkflowCentre) -> None:
    cluster = await centre.create("reused")
    await delete_by_http(centre, cluster)
    await eventually(lambda: ended(centre, cluster))
    again = await centre.create("Reused")
    assert again != cluster


async def test_a_bootstrapped_cluster_is_asked_to_empty_and_detach_before_it_goes(centre: WorkflowCentre) -> None:
    cluster = await centre.create("polite")
    await centre.bootstrap(cluster)
    await centre.until(cluster, phase(Phase.ACTIVE))
    await delete_by_http(centre, cluster)
    row = await centre.until(cluster, at_step(StepName.AWAIT_EMPTY))
    assert row.projection and row.projection.order.value == "report_empty"
    assert "the edge (await_empty) until" in row.projection.waiting_for
    await centre.ports.edge_reports.inventory_empty(cluster, row.generation)
    await centre.fleet.nudge(cluster)
    row = await centre.until(cluster, at_step(StepName.AWAIT_GOODBYE))
    assert row.projection and row.projection.order.value == "detach"
    await centre.ports.edge_reports.goodbye(cluster, row.generation)
    await centre.fleet.nudge(cluster)
    row = await centre.until(cluster, phase(Phase.DELETED))
    assert row.projection and row.projection.residue == ()
    assert await centre.ports.edge_access.credentials(cluster) == []


async def test_a_purge_by_signal_brings_its_rights_with_the_commit_that_empties_the_edge(
    centre: WorkflowCentre,
) -> None:
    cluster = await centre.create("purged")
    await centre.bootstrap(cluster)
    await centre.until(cluster, phase(Phase.ACTIVE))
    await centre.handle(cluster).signal(names.SIGNAL_DELETE, {"purge": True, "force": True})
    await eventually(lambda: told(centre, cluster, "delete.refused"))
    await centre.handle(cluster).signal(names.SIGNAL_DELETE, {"purge": True})
    row = await centre.until(cluster, at_step(StepName.AWAIT_EMPTY))
    head = await asyncio.to_thread(centre.git.head, cluster)
    assert head is not None
    files = await asyncio.to_thread(centre.git.list, cluster, "", at=head)
    assert {"edo/cluster/purge.yaml", "edo/purge/rights.yaml"} <= set(files)
    [newest] = await asyncio.to_thread(centre.git.log, cluster, limit=1)
    assert f"\n{REMOVAL_TRAILER}: workloads\n" in newest.message, "a restore knows the commit by that line"
    assert newest.message.startswith("Remove the workloads of "), "up to 0.3.0, after a rollback, by this one"
    await centre.ports.edge_reports.goodbye(cluster, row.generation, Purge(done=False, problem="Somebody pays."))
    await centre.fleet.nudge(cluster)
    row = await centre.until(cluster, phase(Phase.DELETED))
    assert row.purge == Purge(asked=True, done=False, problem="Somebody pays.")
    assert await told(centre, cluster, "edge.not_purged")


async def told(centre: WorkflowCentre, cluster: UUID, kind: str) -> bool:
    return kind in [event.kind for event in await centre.audit.timeline(cluster)]


async def test_a_forced_deletion_leaves_residue_and_credentials_that_can_only_detach(centre: WorkflowCentre) -> None:
    cluster = await centre.create("dead")
    await centre.bootstrap(cluster)
    await centre.until(cluster, phase(Phase.ACTIVE))
    await centre.wishes.request_deletion(cluster, actor="token:test", force=True)
    await centre.fleet.nudge(cluster)
    row = await centre.until(cluster, phase(Phase.DELETED))
    assert row.projection and {r.step for r in row.projection.residue} >= {StepName.AWAIT_GOODBYE}
    states = {credential.state for credential in await centre.ports.edge_access.credentials(cluster)}
    assert states == {CredentialState.DETACH_ONLY}


async def test_a_deletion_ends_at_its_deadline(centre: WorkflowCentre) -> None:
    cluster = await centre.create("silent")
    await centre.bootstrap(cluster)
    await centre.until(cluster, phase(Phase.ACTIVE))
    await centre.wishes.request_deletion(cluster, actor="token:test", deadline=timedelta(seconds=2))
    await centre.fleet.nudge(cluster)
    row = await centre.until(cluster, phase(Phase.DELETED))
    assert row.projection
    assert any("deadline" in residue.reason for residue in row.projection.residue)


async def test_kept_workloads_stay_in_the_repository_until_the_edge_has_gone(centre: WorkflowCentre) -> None:
    cluster = await centre.create("kept")
    await centre.bootstrap(cluster)
    await centre.wishes.request_deletion(cluster, actor="token:test", workloads=Workloads.KEEP)
    await centre.fleet.nudge(cluster)
    await centre.until(cluster, at_step(StepName.AWAIT_GOODBYE))
    assert len(await asyncio.to_thread(centre.git.log, cluster, limit=10)) == 1


async def test_a_deletion_step_on_another_system_can_be_skipped_with_a_reason(centre: WorkflowCentre) -> None:
    cluster = await centre.create("skipped")
    await centre.bootstrap(cluster)
    await delete_by_http(centre, cluster)
    await centre.until(cluster, at_step(StepName.AWAIT_EMPTY))
    fleet = centre.fleet
    await fleet.skip_step(cluster, StepName.AWAIT_EMPTY, reason="scrapped", actor="token:ann")
    await centre.until(cluster, at_step(StepName.AWAIT_GOODBYE))
    await fleet.skip_step(cluster, StepName.AWAIT_GOODBYE, reason="scrapped", actor="token:ann")
    row = await centre.until(cluster, phase(Phase.DELETED))
    assert row.projection and [r.reason for r in row.projection.residue] == ["scrapped", "scrapped"]
    skips = [event for event in await centre.audit.timeline(cluster) if event.kind == "step.skipped"]
    assert {event.actor for event in skips} == {"token:ann"}


async def test_an_undeleted_cluster_goes_on_as_if_nothing_had_been_said(idle_centre: WorkflowCentre) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("regretted")
    await idle_centre.wishes.request_deletion(cluster, actor="token:test")
    await idle_centre.wishes.undelete(cluster, actor="token:test")
    async with working(idle_centre):
        await idle_centre.fleet.nudge(cluster)
        row = await idle_centre.until(
            cluster, lambda row: bool(row.projection and row.projection.change_done == row.change)
        )
        assert row.projection and row.projection.ready
        assert row.projection.phase is Phase.AWAITING_BOOTSTRAP


async def test_a_central_removal_does_not_touch_the_edge(centre: WorkflowCentre) -> None:
    cluster = await centre.create("removed")
    await centre.bootstrap(cluster)
    await centre.until(cluster, phase(Phase.ACTIVE))
    await centre.wishes.request_removal(cluster, actor="token:test")
    await centre.fleet.nudge(cluster)
    await centre.until(cluster, phase(Phase.REMOVED))
    await eventually(lambda: lacks(centre, APP_CLUSTER_SETUP_STATUS, cluster))
    assert await asyncio.to_thread(centre.git.exists, cluster)
    assert len(await asyncio.to_thread(centre.git.log, cluster, limit=10)) == 1
    states = {credential.state for credential in await centre.ports.edge_access.credentials(cluster)}
    assert states == {CredentialState.SUSPENDED}
    with pytest.raises(Conflict):
        await centre.create("removed")


async def lacks(centre: WorkflowCentre, app: UUID, cluster: UUID) -> bool:
    return not await has_entry(centre, app, cluster)


async def test_the_same_name_again_is_a_recreation_on_the_same_repository(centre: WorkflowCentre) -> None:
    cluster = await centre.create("again")
    await centre.bootstrap(cluster)
    await centre.until(cluster, phase(Phase.ACTIVE))
    first = await asyncio.to_thread(centre.git.head, cluster)
    await centre.wishes.request_removal(cluster, actor="token:test")
    await centre.fleet.nudge(cluster)
    await centre.until(cluster, phase(Phase.REMOVED))
    await centre.write(cluster, "again", values={"chart": "new"})
    await centre.until(cluster, lambda row: bool(row.projection and row.projection.ready))
    head = await asyncio.to_thread(centre.git.head, cluster)
    assert first and head and first != head
    assert await asyncio.to_thread(centre.git.is_ancestor, cluster, first, head)
    states = {credential.state for credential in await centre.ports.edge_access.credentials(cluster)}
    assert states == {CredentialState.ACTIVE}


async def test_a_removed_cluster_keeps_its_name(centre: WorkflowCentre) -> None:
    cluster = await centre.create("kept-name")
    await centre.wishes.request_removal(cluster, actor="token:test")
    with pytest.raises(Conflict) as refused:
        await centre.write(cluster, "other-name")
    assert refused.value.code == "name_immutable"


async def test_a_recreation_during_a_deletion_is_refused(centre: WorkflowCentre) -> None:
    cluster = await centre.create("going")
    await centre.bootstrap(cluster)
    await delete_by_http(centre, cluster)
    for attempt in (
        centre.write(cluster, "going"),
        centre.wishes.request_recreation(cluster, actor="token:test", new_hardware=False),
    ):
        with pytest.raises(Conflict) as refused:
            await attempt
        assert refused.value.code == "deleting"


async def test_a_recreation_for_new_hardware_refuses_the_old_edge(centre: WorkflowCentre) -> None:
    cluster = await centre.create("replaced")
    await centre.bootstrap(cluster)
    await centre.until(cluster, phase(Phase.ACTIVE))
    await centre.wishes.request_recreation(cluster, actor="token:test", new_hardware=True)
    await centre.fleet.nudge(cluster)
    row = await centre.until(
        cluster,
        lambda row: bool(row.projection and row.projection.ready and row.projection.done.generation == 2),
    )
    assert row.projection and row.projection.phase is Phase.AWAITING_BOOTSTRAP
    assert await centre.ports.edge_access.credentials(cluster) == []
    assert not await has_entry(centre, APP_CLUSTER_STATUS, cluster)


class StuckRepositories:
    """Git whose creation of repositories hangs, as a dead network mount does."""

    def __init__(self, real: object) -> None:
        self._real = real

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    def create_repository(self, *_args: object, **_more: object) -> None:
        raise Waiting("The Git storage is away.", code="git_unavailable", retry_after=60)


@pytest.mark.parametrize("delete", DOORS)
async def test_a_deletion_wins_over_a_stuck_step_and_the_sweep_brings_nothing_back(
    idle_centre: WorkflowCentre, delete: Any
) -> None:
    async with working(idle_centre, git=StuckRepositories(idle_centre.git)):
        cluster = uuid4()
        await idle_centre.write(cluster, "stuck-and-deleted")
        await idle_centre.until(
            cluster, lambda row: bool(row.projection and "Git storage is away" in row.projection.waiting_for)
        )
        await delete(idle_centre, cluster)
        await idle_centre.until(cluster, phase(Phase.DELETED))
        await eventually(lambda: ended(idle_centre, cluster))
        for _ in range(2):
            await idle_centre.client.execute_workflow(
                names.SWEEP_TYPE, id=f"sweep-{uuid4()}", task_queue=names.CLUSTERS_QUEUE
            )
        assert await ended(idle_centre, cluster)
        assert not await has_entry(idle_centre, APP_CLUSTER_SETUP_STATUS, cluster)
        assert await idle_centre.directory.find("stuck-and-deleted") is None


async def test_secrets_of_the_old_hardware_are_taken_away_listed_and_come_off_the_list_when_entered_again(
    centre: WorkflowCentre,
) -> None:
    cluster = await centre.create("moved")
    await put(centre, cluster, generation=1)
    await centre.wishes.request_recreation(cluster, actor="token:test", new_hardware=True)
    await centre.fleet.nudge(cluster)
    row = await centre.until(
        cluster, lambda row: bool(row.projection and row.projection.ready and row.projection.done.generation == 2)
    )
    assert list(row.must_reenter) == [SecretKey("default", "db", "password")]
    head = await asyncio.to_thread(centre.git.head, cluster)
    assert head
    assert "edo/secrets/default/db.yaml" not in await asyncio.to_thread(centre.git.list, cluster, "", at=head)
    await put(centre, cluster, generation=2)
    assert list((await centre.row(cluster)).must_reenter) == []


async def put(centre: WorkflowCentre, cluster: UUID, *, generation: int) -> None:
    now = datetime.now(UTC)
    certificate = parse_certificate(certificate_pem(private_key()), now=now)
    change = StagedChange(
        request=uuid4(),
        cluster=cluster,
        generation=generation,
        place=SecretKey("default", "db", "password"),
        ciphertext=seal(Plaintext(b"v"), certificate, scope=Scope.STRICT, secret=SecretReference("default", "db")),
        fingerprint=certificate.fingerprint,
        sealed_at=now,
        actor="token:test",
    )
    await centre.ports.staging.stage([change])
    await centre.fleet.change_secrets(cluster, [change.request])
    assert [row.state for row in await centre.ports.staging.request(change.request)] == [StagedState.COMMITTED]
