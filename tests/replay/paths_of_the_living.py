"""Commissioning, changes, secrets, and what an edge says."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from centre import eventually
from cluster_states import StatusAway, at_phase, postpone, tells, waits_to_try
from resealing_edge import ResealingEdge, answer, ask, certify, to_put
from sealing_keys import certificate_pem, private_key
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue
from walk import (
    ACTOR,
    Faulty,
    Walk,
    away,
    fails_again_and_again,
    is_blocked,
    is_committed,
    path,
)

from edgewright.domain.cluster import (
    AcceptancePolicy,
    ClusterSettings,
    ConditionStatus,
    ConditionType,
    Phase,
    StepName,
)
from edgewright.domain.wellknown import APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART
from edgewright.messages import names
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.edge_reports import Heartbeat

# --- commissioning and changes -----------------------------------------------------------------------------------


@path
async def commissioning(walk: Walk) -> UUID:
    async with walk.working():
        return await walk.create()


@path
async def creation_that_is_nudged_in_the_bulk_queue(walk: Walk) -> UUID:
    """Its first activity waits for its turn, and the workflow reads for itself meanwhile."""

    async def asked_for(*activities: str) -> bool:
        return [
            event.activity_task_scheduled_event_attributes.activity_type.name
            async for event in walk.centre.handle(cluster).fetch_history_events()
            if event.HasField("activity_task_scheduled_event_attributes")
        ] == list(activities)

    async with walk.working(but=names.BULK_QUEUE):
        cluster = await walk.begin()
        await eventually(lambda: asked_for("read_and_commission"))
        await walk.nudge(cluster)
        await eventually(lambda: asked_for("read_and_commission", "read_wanted"))
    async with walk.working():
        await walk.until(cluster, lambda row: bool(row.projection and row.projection.ready))
        await walk.told(cluster)
        return cluster


@path
async def change_rendered_again(walk: Walk) -> UUID:
    async with walk.working():
        cluster = await walk.create()
        await walk.centre.write(cluster, walk.name, values={"replicas": 3})
        await walk.until(cluster, lambda row: bool(row.projection and row.projection.change_done == row.change))
        await walk.told(cluster)
        return cluster


@path
async def change_that_the_edge_has_not_applied(walk: Walk) -> UUID:
    """With a release that fails there meanwhile, and heals."""

    def says(kind: ConditionType, status: ConditionStatus) -> Callable[[ClusterRow], bool]:
        return lambda row: row.projection is not None and row.projection.status_of(kind) is status

    synced, healthy = ConditionType.SYNCED, ConditionType.HEALTHY

    async def applied(cluster: UUID, ready: str) -> None:
        commit = await asyncio.to_thread(walk.centre.git.head, cluster)
        release = {"name": "edge-cluster", "conditions": [{"type": "Ready", "status": ready, "message": "no"}]}
        await walk.centre.ports.edge_reports.write_status(
            cluster,
            {"flux": {"releases": [release]}},
            certificate=None,
            certificate_problem=None,
            generation=1,
            actor="agent",
        )
        await walk.centre.ports.edge_reports.heartbeats([Heartbeat(cluster, 1, observed_revision=commit)])
        await walk.nudge(cluster)

    async with walk.working():
        cluster = await walk.active()
        await applied(cluster, "True")
        await walk.until(cluster, says(synced, ConditionStatus.TRUE))
        await walk.centre.write(cluster, walk.name, values={"replicas": 3})
        await walk.until(cluster, says(synced, ConditionStatus.FALSE))
        await applied(cluster, "False")
        await walk.until(cluster, says(healthy, ConditionStatus.FALSE))
        await applied(cluster, "True")
        await walk.until(cluster, says(synced, ConditionStatus.TRUE))
        await walk.told(cluster)
        return cluster


@path
async def change_overtakes_a_step(walk: Walk) -> UUID:
    git = Faulty(walk.centre.git, "create_repository", sync=True)
    git.fault = 2.0
    async with walk.working(git=git):
        cluster = await walk.begin()
        await asyncio.sleep(0.7)
        await walk.centre.write(cluster, walk.name, values={"replicas": 3})
        git.fault = None
        await walk.until(cluster, lambda row: bool(row.projection and row.projection.ready))
        await walk.told(cluster)
        return cluster


@path
async def template_blocked_then_mended(walk: Walk) -> UUID:
    entries, chart = walk.centre.ports.config, (APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART)
    sound = await entries.get(*chart)
    assert sound is not None
    async with walk.working():
        await entries.put(*chart, {**sound.body, "values": {"site": "{{ no.such.thing }}"}}, actor=ACTOR)
        cluster = await walk.begin()
        await walk.until(cluster, is_blocked)
        await walk.told(cluster)
        await entries.put(*chart, sound.body, actor=ACTOR)
        await walk.nudge(cluster)
        await walk.until(cluster, lambda row: bool(row.projection and row.projection.ready))
        await walk.told(cluster)
        return cluster


@path
async def failing_step_with_backoff_and_retry(walk: Walk) -> UUID:
    git = Faulty(walk.centre.git, "create_repository", sync=True)
    git.fault = away()
    async with walk.working(git=git):
        cluster = await walk.begin()
        await walk.until(cluster, fails_again_and_again)
        git.fault = None
        await walk.centre.fleet.retry_step(cluster, StepName.CREATE_REPOSITORY, actor=ACTOR)
        await walk.until(cluster, lambda row: bool(row.projection and row.projection.ready))
        await walk.told(cluster)
        return cluster


@path
async def step_that_waits_for_a_moment_of_a_wrong_clock(walk: Walk) -> UUID:
    async with walk.working(steps=StatusAway(walk.centre.steps)):
        cluster = await walk.begin()
        await walk.until(cluster, waits_to_try(StepName.PUBLISH_STATUS))
    await postpone(walk.centre, cluster, StepName.PUBLISH_STATUS, by=timedelta(days=400))
    async with walk.working():
        await walk.nudge(cluster)
        await walk.until(cluster, lambda row: bool(row.projection and row.projection.ready))
        await walk.told(cluster)
        return cluster


@path
async def database_away(walk: Walk) -> UUID:
    steps = Faulty(walk.centre.steps, "read_wanted", "project")
    async with walk.working(steps=steps):
        cluster = await walk.create()
        steps.fault = away(retry_after=5)
        await walk.nudge(cluster)
        await asyncio.sleep(1.5)
        steps.fault = None
        await walk.centre.write(cluster, walk.name, values={"replicas": 3})
        await walk.until(cluster, lambda row: bool(row.projection and row.projection.change_done == row.change))
        await walk.told(cluster)
        return cluster


@path
async def pause_and_resume(walk: Walk) -> UUID:
    async with walk.working():
        cluster, fleet = await walk.create(), walk.centre.fleet
        await fleet.pause(cluster, reason="shift change", actor=ACTOR)
        await walk.centre.write(cluster, walk.name, values={"held": True})
        await walk.until(
            cluster, lambda row: bool(row.projection and "commits are paused" in row.projection.waiting_for)
        )
        await fleet.resume(cluster, actor=ACTOR)
        await walk.until(cluster, lambda row: bool(row.projection and not row.projection.waiting_for))
        await walk.told(cluster)
        return cluster


@path
async def pause_that_raises_the_fence(walk: Walk) -> UUID:
    async with walk.working():
        cluster, git = await walk.create(), walk.centre.ports.git

        async def is_raised() -> bool:
            return await asyncio.to_thread(git.fence_number, cluster) > 0

        await walk.centre.fleet.pause(cluster, reason="shift change", actor=ACTOR)
        await eventually(is_raised)
        await walk.centre.fleet.resume(cluster, actor=ACTOR)
        await walk.told(cluster)
        return cluster


# --- the edge ----------------------------------------------------------------------------------------------------


@path
async def attempt_that_takes_long(walk: Walk) -> UUID:
    git = Faulty(walk.centre.git, "create_repository", sync=True)
    git.fault = 12.0
    async with walk.working(git=git):
        cluster = await walk.begin()

        async def says_so() -> bool:
            await walk.nudge(cluster)
            await asyncio.sleep(1)
            row = await walk.centre.row(cluster)
            return bool(row.projection and "running since" in row.projection.waiting_for)

        await eventually(says_so)
        git.fault = None
        await walk.until(cluster, lambda row: bool(row.projection and row.projection.ready))
        await walk.told(cluster)
        return cluster


@path
async def more_signals_than_are_taken(walk: Walk) -> UUID:
    async with walk.working():
        cluster = await walk.create()
    handle = walk.centre.handle(cluster)
    await handle.signal(names.SIGNAL_EDGE_STATUS, ["too large" * 100] * 80)
    for number in range(25):
        await handle.signal(names.SIGNAL_EDGE_STATUS, {"hosts": [{"name": f"host-{number}"}]})
    async with walk.working():
        await eventually(lambda: tells(walk.centre, cluster, "signals.dropped"))
        await walk.told(cluster)
        return cluster


@path
async def signals_that_are_refused(walk: Walk) -> UUID:
    async with walk.working():
        cluster = await walk.create()
        handle = walk.centre.handle(cluster)
        for number in range(7):
            await handle.signal(f"delet{number}", {"force": True})
        await handle.signal(names.SIGNAL_DELETE, "text")
        await handle.signal(names.SIGNAL_EDGE_STATUS, ["a", "list"])
        await handle.signal(names.SIGNAL_SEALING_KEY_ROTATED, 7)
        await handle.signal(names.SIGNAL_RECONCILE, "text")
        await handle.signal(names.SIGNAL_DELETE, args=[1, 2])
        await eventually(lambda: tells(walk.centre, cluster, "signals.dropped"))
        await walk.told(cluster)
        return cluster


@path
async def signal_that_is_larger_as_it_is_carried(walk: Walk) -> UUID:
    numbers = b'{"hosts":[' + b",".join([b"1e15"] * 3_600) + b"]}"
    async with walk.working():
        cluster = await walk.create()
        signal = RawValue(Payload(metadata={"encoding": b"json/plain"}, data=numbers))
        await walk.centre.handle(cluster).signal(names.SIGNAL_EDGE_STATUS, signal)
        await eventually(lambda: tells(walk.centre, cluster, "signals.dropped"))
        await walk.told(cluster)
        return cluster


@path
async def edge_status_and_sealing_key(walk: Walk) -> UUID:
    async with walk.working():
        cluster, handle = await walk.active(), walk.centre.handle
        pem = certificate_pem(private_key())
        await handle(cluster).signal(names.SIGNAL_EDGE_STATUS, {"version": "1.0.0", "kubeseal_cert": pem})
        await walk.until(cluster, lambda row: row.proposed is not None)
        await handle(cluster).signal(names.SIGNAL_SEALING_KEY_ROTATED, "no certificate")
        await handle(cluster).signal(names.SIGNAL_SEALING_KEY_ROTATED)
        await handle(cluster).signal(names.SIGNAL_EDGE_STATUS, {"hosts": "no list"})
        await walk.told(cluster)
        return cluster


@path
async def resealing(walk: Walk) -> UUID:
    async with walk.working():
        cluster, centre = await walk.active(), walk.centre
        edge = ResealingEdge(centre.git, cluster)
        await certify(centre, cluster, 1)
        for secret in ("default/db", "other/more"):
            changes = to_put(cluster, secret, {"password": b"s3cr3t"}, 1)
            await centre.ports.staging.stage(changes)
            await centre.fleet.change_secrets(cluster, [changes[0].request])
        await certify(centre, cluster, 2)
        await ask(centre, cluster)
        await walk.told(cluster)
        for _ in range(2):
            await answer(centre, edge, most=1)
            await walk.told(cluster)
        await eventually(lambda: is_committed(walk, cluster))
        await walk.told(cluster)
        return cluster


@path
async def registration(walk: Walk) -> UUID:
    async with walk.working():
        return await walk.active()


@path
async def registration_that_is_accepted(walk: Walk) -> UUID:
    async with walk.working():
        cluster = await walk.create(ClusterSettings(accept=AcceptancePolicy.MANUAL))
        await walk.centre.bootstrap(cluster)
        await walk.until(cluster, at_phase(Phase.PENDING_ACCEPTANCE))
        await walk.centre.ports.edge_access.answer(cluster, accepted=True, actor=ACTOR)
        await walk.nudge(cluster)
        await walk.until(cluster, at_phase(Phase.ACTIVE))
        await walk.told(cluster)
        return cluster


def is_available(status: ConditionStatus) -> Callable[[ClusterRow], bool]:
    return lambda row: bool(row.projection and row.projection.status_of(ConditionType.AVAILABLE) is status)


@path
async def lease_expires_and_is_renewed(walk: Walk) -> UUID:
    async with walk.working():
        cluster, reports = await walk.active(), walk.centre.ports.edge_reports
        for status in (ConditionStatus.TRUE, ConditionStatus.UNKNOWN, ConditionStatus.TRUE):
            if status is ConditionStatus.TRUE:
                await reports.heartbeats([Heartbeat(cluster, 1, clock_offset=0.5)])
            else:
                for _ in range(32):
                    await reports.keep_listening()
                    walk.clock.ahead += timedelta(seconds=10)
                await reports.keep_listening()
                assert await reports.expire_leases() == [cluster]
            await walk.nudge(cluster)
            await walk.until(cluster, is_available(status))
        await walk.told(cluster)
        return cluster
