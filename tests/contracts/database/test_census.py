"""The fleet in numbers: what is counted, by which clock, and that deleted clusters are not."""

from datetime import timedelta
from uuid import uuid4

from database_stores import ACTOR, Store
from sqlalchemy import update

from edgewright.adapters.database.tables import clusters
from edgewright.domain.cluster import (
    Condition,
    ConditionStatus,
    ConditionType,
    LeaseState,
    Phase,
    StepName,
    StepState,
)
from edgewright.domain.kubernetes_names import SecretKey
from edgewright.domain.projection import StepRecord
from edgewright.ports.census import LEASE_AGES, Counted
from edgewright.ports.edge_reports import Heartbeat
from edgewright.ports.secret_staging import StagedChange


def condition(kind: ConditionType, at: Store) -> Condition:
    return Condition(type=kind, status=ConditionStatus.TRUE, reason="Tested", since=at.clock())


async def test_empty_fleet_is_counted(timed: Store) -> None:
    assert await timed.census.count() == Counted()


async def test_clusters_are_counted_by_phase(timed: Store) -> None:
    for name in ("one", "two"):
        await timed.commissioned(name)
    await timed.create("three")
    phases = (await timed.census.count()).phases
    assert phases == {Phase.AWAITING_BOOTSTRAP: 2, Phase.COMMISSIONING: 1}


async def test_failing_steps_are_counted_by_what_has_to_happen(timed: Store) -> None:
    plans = {
        "well": (StepRecord(name=StepName.CREATE_ACCOUNTS, state=StepState.RUNNING),),
        "waits": (
            StepRecord(name=StepName.ALLOCATE_ADDRESS, state=StepState.DONE),
            StepRecord(name=StepName.POPULATE_REPOSITORY, state=StepState.WAITING, error="The disk is full."),
        ),
        "tries again": (
            StepRecord(name=StepName.POPULATE_REPOSITORY, state=StepState.RUNNING, error="The disk is full."),
        ),
        "blocked": (StepRecord(name=StepName.ALLOCATE_ADDRESS, state=StepState.BLOCKED, error="Another has it."),),
    }
    for name, steps in plans.items():
        cluster = await timed.create(name.replace(" ", "-"))
        await timed.publish(cluster, Phase.COMMISSIONING, ready=False, steps=steps)
    templates = await timed.create("templates")
    blocked = (condition(ConditionType.BLOCKED, timed),)
    await timed.publish(templates, Phase.AWAITING_BOOTSTRAP, ready=True, conditions=blocked)
    assert (await timed.census.count()).failing == {
        (StepState.WAITING, StepName.POPULATE_REPOSITORY): 2,
        (StepState.BLOCKED, StepName.ALLOCATE_ADDRESS): 1,
        (StepState.BLOCKED, None): 1,
    }


async def test_what_fails_no_more_is_counted_no_more(timed: Store) -> None:
    cluster = await timed.create()
    failing = (StepRecord(name=StepName.CREATE_REPOSITORY, state=StepState.WAITING, error="Away."),)
    await timed.publish(cluster, Phase.COMMISSIONING, ready=False, steps=failing)
    assert (await timed.census.count()).failing
    await timed.publish(cluster, Phase.AWAITING_BOOTSTRAP, ready=True)
    assert (await timed.census.count()).failing == {}


async def test_leases_are_counted_by_state_and_age(timed: Store) -> None:
    made = [await timed.commissioned(name) for name in ("one", "two", "three")]
    for cluster in made[:2]:
        await timed.edge_reports.heartbeats([Heartbeat(cluster, 1)])
        timed.clock.advance(seconds=100)
    counted = await timed.census.count()
    assert counted.leases == {LeaseState.CURRENT: 2, LeaseState.NEVER: 1}
    assert counted.heard == 2
    by_age = dict(zip(LEASE_AGES, counted.lease_ages, strict=True))
    assert {bound: by_age[bound] for bound in (60.0, 120.0, 300.0, 86400.0)} == {60: 0, 120: 1, 300: 2, 86400: 2}


async def test_age_of_the_oldest_that_was_never_ready_is_told(timed: Store) -> None:
    await timed.create("old")
    timed.clock.advance(minutes=5)
    await timed.create("young")
    timed.clock.advance(minutes=1)
    assert (await timed.census.count()).oldest_commissioning == 360


async def test_sealed_values_without_a_commit_are_counted(timed: Store) -> None:
    cluster, request = await timed.commissioned(), uuid4()
    change = StagedChange(
        request, cluster, 1, SecretKey("default", "db", "key"), "ciphertext", "f" * 64, timed.clock(), ACTOR
    )
    await timed.staging.stage([change])
    timed.clock.advance(seconds=40)
    counted = await timed.census.count()
    assert (counted.staged, counted.oldest_staged) == (1, 40)
    await timed.staging.committed([request], "c" * 40)
    counted = await timed.census.count()
    assert (counted.staged, counted.oldest_staged) == (0, 0)


async def test_deleted_clusters_are_not_counted(timed: Store) -> None:
    cluster = await timed.create()
    failing = (StepRecord(name=StepName.ALLOCATE_ADDRESS, state=StepState.BLOCKED, error="Another has it."),)
    await timed.publish(cluster, Phase.COMMISSIONING, ready=False, steps=failing)
    timed.clock.advance(seconds=timedelta(days=1).total_seconds())
    async with timed.database.write() as connection:
        closed = update(clusters).where(clusters.c.uuid == cluster).values(closed_at=timed.clock())
        await connection.execute(closed)
    assert await timed.census.count() == Counted()
