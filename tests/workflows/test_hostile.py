"""What a hostile reviewer tried. Each of these once hung, looped or lost something."""

import asyncio
import shutil
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from centre import WorkflowCentre, eventually, working
from cluster_states import at_step, staged
from sealing_keys import certificate_pem, private_key
from sqlalchemy import update
from temporalio.common import RetryPolicy

from edgewright.adapters.database.clusters.wanted_reading import PROOF_DUE
from edgewright.adapters.database.tables import clusters
from edgewright.application.edge_status import EdgeStatusDoor
from edgewright.domain.cluster import ConditionStatus, ConditionType, Fence, Phase, Role, StepName
from edgewright.domain.conditions import next_review
from edgewright.domain.events import EventKind
from edgewright.domain.kubernetes_names import SecretKey
from edgewright.domain.wellknown import (
    APP_HELM_CHART_TEMPLATE,
    APP_SPARKPLUG_ADDRESS,
    CLASS_HELM_CHART,
    OBJECT_DEFAULT_CHART,
)
from edgewright.errors import Stalled
from edgewright.messages import names
from edgewright.messages.cluster import ClusterState, ManagedClusterInput
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.config_store import NewEntry
from edgewright.ports.edge_reports import Heartbeat
from workflows import policies


def phase(expected: Phase) -> Any:
    def holds(row: Any) -> bool:
        return row.projection is not None and row.projection.phase is expected

    return holds


async def history_length(centre: WorkflowCentre, cluster: UUID) -> int:
    described = await centre.handle(cluster).describe()
    return int(described.history_length)


class Faulty:
    """A port that behaves as the real one, but for what the test replaces."""

    def __init__(self, real: object, **replaced: Any) -> None:
        self._real = real
        self._replaced = replaced

    def __getattr__(self, name: str) -> Any:
        return self._replaced.get(name) or getattr(self._real, name)


async def test_a_step_goes_on_by_itself_once_the_head_of_its_repository_is_back(centre: WorkflowCentre) -> None:
    cluster = await centre.create("headless", values={"replicas": 1})
    file = centre.git.folder(cluster) / "HEAD"
    head = file.read_text()
    file.unlink()
    await centre.write(cluster, "headless", values={"replicas": 2})
    await centre.until(
        cluster, lambda row: bool(row.projection and "lost its file HEAD" in row.projection.waiting_for)
    )
    file.write_text(head)
    await centre.until(
        cluster,
        lambda row: bool(
            row.projection and row.projection.change_done == row.change and not row.projection.waiting_for
        ),
    )
    assert len(await asyncio.to_thread(centre.git.log, cluster, limit=9)) == 2


async def test_a_deletion_that_is_blocked_after_its_deadline_rests(idle_centre: WorkflowCentre) -> None:
    def archive(repository: UUID) -> None:
        raise Stalled("The repository is damaged.", code="repository_damaged")

    async with working(idle_centre, git=Faulty(idle_centre.git, archive=archive)):
        cluster = await idle_centre.create("blocked-late")
        await idle_centre.wishes.request_deletion(cluster, actor="token:test", deadline=timedelta(seconds=0))
        await idle_centre.fleet.nudge(cluster)
        await idle_centre.until(cluster, lambda row: bool(row.projection and "damaged" in row.projection.waiting_for))

        async def rests() -> bool:
            before = await history_length(idle_centre, cluster)
            await asyncio.sleep(1.5)
            return await history_length(idle_centre, cluster) == before

        await eventually(rests)


async def test_a_step_that_a_fence_refused_looks_again_by_itself(idle_centre: WorkflowCentre) -> None:
    entered, go_on = asyncio.Event(), asyncio.Event()
    real = idle_centre.ports.accounts

    async def ensure(fence: Any, accounts: Any) -> None:
        entered.set()
        await go_on.wait()
        await real.ensure(fence, accounts)

    async with working(idle_centre, accounts=Faulty(real, ensure=ensure)):
        cluster = uuid4()
        await idle_centre.write(cluster, "overtaken")
        await entered.wait()
        # written by a gateway that dies before it nudges
        body = {"name": "overtaken", "namespace": "edgewright", "values": {"a": 1}}
        await idle_centre.wishes.write_configuration(cluster, body, actor="token:test")
        go_on.set()
        await idle_centre.until(cluster, lambda row: bool(row.projection and row.projection.ready), seconds=10)
        assert await history_length(idle_centre, cluster) < 200


async def test_as_many_labels_as_there_may_be_do_not_wedge_a_cluster(centre: WorkflowCentre) -> None:
    cluster = await centre.create("labelled")
    labels = {f"example.org/label-number-{n}": "v" * 60 for n in range(64)}
    await centre.wishes.write_settings(cluster, {"labels": labels}, actor="token:test")
    await centre.fleet.nudge(cluster)
    await centre.until(
        cluster, lambda row: bool(row.projection and row.projection.change_done == row.change), seconds=10
    )


async def test_a_certificate_by_signal_waits_for_an_admin_and_says_so(idle_centre: WorkflowCentre) -> None:
    own, foreign = (certificate_pem(private_key(bits)) for bits in (2048, 3072))
    async with working(idle_centre):
        cluster = await idle_centre.create("faithful")
        door = EdgeStatusDoor(idle_centre.directory, idle_centre.ports.edge_reports, idle_centre.ports.config)
        await door.record(cluster, {"hosts": [], "kubeseal_cert": own}, merge=False, actor="agent", generation=1)
        handle = idle_centre.handle(cluster)
        await handle.signal(names.SIGNAL_EDGE_STATUS, {"hosts": [], "kubeseal_cert": foreign})
        row = await idle_centre.until(cluster, lambda row: "proposed" in told(row))
        for body in ({"kubeseal_cert": foreign}, foreign, "no certificate"):
            await handle.signal(names.SIGNAL_SEALING_KEY_ROTATED, body)
        await eventually(lambda: is_told_of(idle_centre, cluster, "sealing_key.refused"))
        after = await idle_centre.row(cluster)
    assert (row.certificate_pem, row.proposed_pem) == (own, foreign)
    assert (after.certificate_pem, after.proposed_pem) == (own, foreign)
    kinds = [event.kind for event in await idle_centre.audit.timeline(cluster)]
    assert (kinds.count(EventKind.CERTIFICATE_PROPOSED), kinds.count(EventKind.CERTIFICATE_CHANGED)) == (1, 1)


def told(row: ClusterRow) -> str:
    """What the condition *SealingKeyCurrent* says."""
    conditions = row.projection.conditions if row.projection else ()
    return next((each.message for each in conditions if each.type is ConditionType.SEALING_KEY_CURRENT), "")


async def is_told_of(centre: WorkflowCentre, cluster: UUID, kind: str) -> bool:
    return kind in [event.kind for event in await centre.audit.timeline(cluster)]


async def test_a_long_list_of_missing_values_wedges_no_cluster(centre: WorkflowCentre) -> None:
    cluster = await centre.create("lost-all")
    many = [SecretKey("default", f"secret-{number:05}", "k" * 60) for number in range(30_000)]
    async with centre.database.write() as connection:
        await connection.execute(update(clusters).where(clusters.c.uuid == cluster).values(must_reenter=many))
    await centre.write(cluster, "lost-all", values={"replicas": 3})
    await centre.until(cluster, lambda row: bool(row.projection and row.projection.change_done == row.change))
    assert list((await centre.row(cluster)).must_reenter) == many
    await centre.wishes.request_deletion(cluster, actor="token:test", force=True)
    await centre.fleet.nudge(cluster)
    await centre.until(cluster, phase(Phase.DELETED))


async def test_a_signal_that_the_database_cannot_take_holds_up_nothing(
    idle_centre: WorkflowCentre, patchable: pytest.MonkeyPatch
) -> None:
    few = RetryPolicy(initial_interval=timedelta(milliseconds=10), maximum_attempts=2)
    patchable.setitem(policies.RECORD, "retry_policy", few)

    async def write_status(*_: object, **__: object) -> bool:
        raise RuntimeError("a character that this database cannot hold")

    async with working(idle_centre, edge_reports=Faulty(idle_centre.ports.edge_reports, write_status=write_status)):
        cluster = await idle_centre.create("poisoned")
        await idle_centre.handle(cluster).signal(names.SIGNAL_EDGE_STATUS, {"hosts": []})
        await idle_centre.handle(cluster).signal(names.SIGNAL_DELETE)
        await idle_centre.until(cluster, phase(Phase.DELETED), seconds=20)
        kinds = [event.kind for event in await idle_centre.audit.timeline(cluster)]
        assert "edge_status.refused" in kinds


async def test_a_workflow_older_than_its_projection_goes_on_from_the_projection(idle_centre: WorkflowCentre) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("restored")
        old = await idle_centre.row(cluster)
        assert old.projection
    state = ClusterState(projection=old.projection, done=old.projection.done)
    async with working(idle_centre):
        await idle_centre.wishes.request_recreation(cluster, actor="token:test", new_hardware=True)
        await idle_centre.fleet.nudge(cluster)
        new = await idle_centre.until(
            cluster, lambda row: bool(row.projection and row.projection.ready and row.projection.done.generation == 2)
        )
        steps = [event.kind for event in await idle_centre.audit.timeline(cluster)].count(EventKind.STEP_DONE)
        await idle_centre.handle(cluster).terminate("a copy from before the recreation is put in its place")
        await idle_centre.client.start_workflow(
            names.WORKFLOW_TYPE,
            ManagedClusterInput(cluster=cluster, state=state),
            id=names.workflow_id(cluster),
            task_queue=names.CLUSTERS_QUEUE,
        )
        projection = await idle_centre.fleet.pause(cluster, reason="look", actor="token:test")
        assert projection.ready and projection.done.generation == 2
        newest = new.projection.sequence if new.projection else 0
        await idle_centre.until(cluster, lambda row: bool(row.projection and row.projection.sequence > newest))
        assert [event.kind for event in await idle_centre.audit.timeline(cluster)].count(EventKind.STEP_DONE) == steps


@pytest.mark.parametrize("end", ["rejected", "revoked", "never answered"])
async def test_a_deletion_does_not_wait_for_an_edge_that_cannot_answer(centre: WorkflowCentre, end: str) -> None:
    cluster = await centre.create("mute")
    if end == "never answered":
        await centre.wishes.write_settings(cluster, {"accept": "manual"}, actor="token:test")
    await centre.bootstrap(cluster)
    if end == "rejected":
        await centre.wishes.write_settings(cluster, {"accept": "manual"}, actor="token:test")
        await centre.ports.edge_access.revoke(cluster, actor="token:test")
        await centre.bootstrap(cluster)
        await centre.ports.edge_access.answer(cluster, accepted=False, actor="token:test")
    if end == "revoked":
        await centre.ports.edge_access.revoke(cluster, actor="token:test")
    await centre.wishes.request_deletion(cluster, actor="token:test")
    await centre.fleet.nudge(cluster)
    row = await centre.until(cluster, phase(Phase.DELETED), seconds=15)
    assert row.projection
    assert {residue.step for residue in row.projection.residue} == {StepName.AWAIT_EMPTY, StepName.AWAIT_GOODBYE}
    assert all("cannot" in r.reason or "no credential" in r.reason for r in row.projection.residue)


async def test_a_name_is_free_although_the_removal_of_its_address_was_skipped(idle_centre: WorkflowCentre) -> None:
    async def remove_central_entries(fence: Fence, step: StepName) -> None:
        if step is StepName.REMOVE_ADDRESS:
            raise Stalled("The directory is broken.", code="directory_broken")
        await idle_centre.steps.remove_central_entries(fence, step)

    faulty = Faulty(idle_centre.steps, remove_central_entries=remove_central_entries)
    async with working(idle_centre, steps=faulty):
        cluster = await idle_centre.create("reused")
        await idle_centre.wishes.request_deletion(cluster, actor="token:test")
        await idle_centre.fleet.nudge(cluster)
        await idle_centre.until(cluster, lambda row: bool(row.projection and "broken" in row.projection.waiting_for))
        await idle_centre.fleet.skip_step(
            cluster, StepName.REMOVE_ADDRESS, reason="gone for good", actor="token:test"
        )
        await idle_centre.until(cluster, phase(Phase.DELETED))
        assert await idle_centre.ports.config.get(APP_SPARKPLUG_ADDRESS, cluster)
        again = await idle_centre.create("reused")
        assert await idle_centre.ports.config.get(APP_SPARKPLUG_ADDRESS, again)
        assert await idle_centre.ports.config.get(APP_SPARKPLUG_ADDRESS, cluster) is None


async def test_the_sweep_tells_news_once_and_leaves_paused_clusters_alone(centre: WorkflowCentre) -> None:
    cluster = await centre.create("chatty")
    await centre.ports.edge_reports.write_status(
        cluster, {"version": "1"}, certificate=None, certificate_problem=None, generation=None, actor="token:test"
    )
    await centre.fleet.nudge(cluster)
    await centre.until(cluster, lambda row: bool(row.projection and row.projection.change_done == row.change))
    await centre.ports.edge_reports.write_status(
        cluster, {"version": "2"}, certificate=None, certificate_problem=None, generation=None, actor="token:test"
    )
    assert cluster in await centre.directory.unfinished()
    await centre.fleet.nudge(cluster)

    async def told() -> bool:
        return cluster not in await centre.directory.unfinished()

    await eventually(told, seconds=10)
    await centre.fleet.pause(cluster, reason="storage", actor="token:test")
    await centre.ports.staging.stage([staged(cluster, "db", "password")])
    await eventually(told, seconds=10)
    await centre.fleet.resume(cluster, actor="token:test")

    async def committed() -> bool:
        return not (await centre.ports.staging.pending(cluster)).changes

    await eventually(committed, seconds=10)


async def test_a_clock_that_goes_wrong_shows_although_nothing_else_is_new(centre: WorkflowCentre) -> None:
    cluster = await centre.create("skewed")
    for offset, expected in ((0.0, ConditionStatus.TRUE), (500.0, ConditionStatus.FALSE)):
        beat = Heartbeat(cluster=cluster, generation=1, clock_offset=offset)
        for news in await centre.ports.edge_reports.heartbeats([beat]):
            await centre.fleet.nudge(news)
        assert await centre.ports.edge_reports.heartbeats([beat]) == []

        def shown(row: Any, expected: ConditionStatus = expected) -> bool:
            return row.projection is not None and row.projection.status_of(ConditionType.CLOCK_SYNCED) is expected

        await centre.until(cluster, shown, seconds=10)


async def test_a_cluster_follows_its_new_chart_although_that_said_the_same_at_first(centre: WorkflowCentre) -> None:
    cluster = await centre.create("moved-chart")
    default = await centre.ports.config.get(APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART)
    assert default
    own = uuid4()
    await centre.ports.config.install([NewEntry(APP_HELM_CHART_TEMPLATE, own, CLASS_HELM_CHART, default.body)])
    await centre.write(cluster, "moved-chart", chart=str(own))

    async def follows() -> bool:
        return cluster in await centre.directory.using_template(APP_HELM_CHART_TEMPLATE, own)

    await eventually(follows, seconds=10)


async def test_an_unproven_rotation_is_looked_at_again_when_it_is_overdue(idle_centre: WorkflowCentre) -> None:
    async with working(idle_centre):
        cluster = await idle_centre.create("rotating")
    await idle_centre.bootstrap(cluster)
    [agent] = [c for c in await idle_centre.ports.edge_access.credentials(cluster) if c.role is Role.AGENT]
    await idle_centre.ports.edge_access.record_use(agent.id)
    await idle_centre.ports.edge_access.add_rotated(cluster, Role.AGENT, b"s" * 32, actor="agent")
    wanted = await idle_centre.steps.read_wanted(cluster)
    assert wanted and wanted.review_at
    now = await idle_centre.ports.edge_reports.now()
    assert PROOF_DUE < wanted.review_at - now < PROOF_DUE + timedelta(minutes=1)
    assert next_review(wanted, now) == wanted.review_at


async def test_asking_again_by_signal_does_not_shorten_the_deadline_that_was_given(centre: WorkflowCentre) -> None:
    cluster = await centre.create("patient")
    await centre.bootstrap(cluster)
    first = await centre.wishes.request_deletion(cluster, actor="token:test", deadline=timedelta(days=7))
    await centre.handle(cluster).signal(names.SIGNAL_DELETE)
    row = await centre.until(cluster, at_step(StepName.AWAIT_EMPTY))
    assert (row.deadline, row.change) == (first.deadline, first.change)


async def test_a_reason_that_no_database_takes_becomes_one_that_every_database_takes(centre: WorkflowCentre) -> None:
    cluster = await centre.create("odd-reason")
    await centre.fleet.pause(cluster, reason="line 4\x00 is\n\tdown " + "x" * 5000, actor="token:test")
    row = await centre.row(cluster)
    assert row.paused_reason == "line 4 is down " + "x" * 985


async def test_a_repository_that_was_lost_is_said_to_be_and_a_recreation_replaces_it(centre: WorkflowCentre) -> None:
    cluster = await centre.create("lost")
    await asyncio.to_thread(shutil.rmtree, centre.git.folder(cluster))
    await centre.write(cluster, "lost", values={"a": 1})
    row = await centre.until(
        cluster, lambda row: bool(row.projection and "no repository" in row.projection.waiting_for), seconds=10
    )
    assert row.projection and row.projection.status_of(ConditionType.BLOCKED) is ConditionStatus.TRUE
    blocked = next(c for c in row.projection.conditions if c.type == ConditionType.BLOCKED)
    assert "backup" in blocked.message
    await centre.wishes.request_recreation(cluster, actor="token:test", new_hardware=False)
    await centre.fleet.nudge(cluster)
    await centre.until(
        cluster, lambda row: bool(row.projection and row.projection.done.commissioning == 2), seconds=10
    )
    assert await asyncio.to_thread(centre.git.head, cluster)
