"""What edges report, and what silence means."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from database_stores import ACTOR, NOON, DatabaseClock, Store
from sqlalchemy.event import listens_for

from edgewright.domain.cluster import CertificateFacts, ClusterSettings, Fence, Lease, LeaseState, Phase, StepName
from edgewright.domain.edge_status import read_edge_status
from edgewright.domain.wellknown import APP_CLUSTER_STATUS
from edgewright.errors import Conflict, Invalid, NotFound, PreconditionFailed, Superseded
from edgewright.ports.config_store import Precondition
from edgewright.ports.edge_reports import Heartbeat

HOSTS = {"hosts": [{"hostname": "n1", "arch": "amd64", "k8s_version": "v1.31.4", "control_plane": True}]}


def certificate(fingerprint: str = "ab" * 32) -> tuple[CertificateFacts, str]:
    facts = CertificateFacts(
        fingerprint=fingerprint, not_before=NOON, not_after=NOON + timedelta(days=3650), taken_at=NOON
    )
    return facts, f"-----BEGIN CERTIFICATE-----\n{fingerprint}\n"


async def report(store: Store, cluster: UUID, body: Any = HOSTS, **more: Any) -> bool:
    wishes = {"certificate": None, "certificate_problem": None, "generation": 1, "actor": "agent"} | more
    return await store.edge_reports.write_status(cluster, body, **wishes)


async def lease(store: Store, cluster: UUID) -> Lease:
    return (await store.row(cluster)).lease


async def test_a_status_is_written_with_its_certificate(timed: Store) -> None:
    cluster = await timed.create()
    assert await report(timed, cluster, certificate=certificate())
    row = await timed.row(cluster)
    assert row.edge_status == read_edge_status(HOSTS)
    assert (row.certificate, row.certificate_pem) == certificate()
    assert (row.lease.state, row.lease.last_heard) == (LeaseState.CURRENT, timed.clock.at)
    wanted = await timed.steps.read_wanted(cluster)
    assert wanted is not None
    assert (wanted.edge_reported_at, wanted.certificate) == (timed.clock.at, row.certificate)
    kinds = await timed.kinds(cluster)
    assert sorted(kinds) == ["certificate.changed", "cluster.created", "edge.joined", "edge.status", "lease.renewed"]


async def test_an_unchanged_status_is_a_sign_of_life_only(timed: Store) -> None:
    cluster = await timed.create()
    await report(timed, cluster, certificate=certificate())
    entry, kinds = await timed.config.get(APP_CLUSTER_STATUS, cluster), await timed.kinds(cluster)
    change = (await timed.row(cluster)).change
    timed.clock.advance(minutes=2)
    assert not await report(timed, cluster, certificate=certificate())
    assert await timed.config.get(APP_CLUSTER_STATUS, cluster) == entry
    assert await timed.kinds(cluster) == kinds
    row = await timed.row(cluster)
    assert (row.change, row.lease.last_heard) == (change, timed.clock.at)


async def test_a_report_on_an_older_status_changes_nothing(timed: Store) -> None:
    """Else a merge by an operator would bring back the certificate that the edge has just replaced."""
    cluster = await timed.create()
    await report(timed, cluster, certificate=certificate())
    entry = await timed.config.get(APP_CLUSTER_STATUS, cluster)
    assert entry is not None
    older = Precondition(match=frozenset({entry.etag}))
    await report(timed, cluster, {"hosts": []}, certificate=certificate("cd" * 32))
    before = await timed.row(cluster)
    with pytest.raises(PreconditionFailed):
        await report(timed, cluster, certificate=certificate(), generation=None, precondition=older)
    assert await timed.row(cluster) == before


async def test_an_operators_report_is_no_sign_of_life(timed: Store) -> None:
    cluster = await timed.create()
    assert await report(timed, cluster, generation=None, actor=ACTOR)
    assert (await lease(timed, cluster)).state is LeaseState.NEVER
    assert (await timed.row(cluster)).edge_status == read_edge_status(HOSTS)


async def test_a_refused_certificate_keeps_the_one_before(timed: Store) -> None:
    cluster = await timed.create()
    await report(timed, cluster, certificate=certificate())
    assert await report(timed, cluster, certificate_problem="It has expired.")
    assert not await report(timed, cluster, certificate_problem="It has expired.")
    wanted = await timed.steps.read_wanted(cluster)
    assert wanted is not None
    assert (wanted.certificate, wanted.certificate_problem) == (certificate()[0], "It has expired.")
    assert (await timed.kinds(cluster)).count("certificate.refused") == 1
    assert await report(timed, cluster, certificate=certificate())
    wanted = await timed.steps.read_wanted(cluster)
    assert wanted is not None
    assert wanted.certificate_problem is None


async def test_a_changed_certificate_is_told_and_raises_the_change(timed: Store) -> None:
    cluster = await timed.create()
    await report(timed, cluster, certificate=certificate())
    before = (await timed.row(cluster)).change
    assert await report(timed, cluster, certificate=certificate("cd" * 32))
    row = await timed.row(cluster)
    assert row.certificate is not None
    assert (row.certificate.fingerprint, row.change) == ("cd" * 32, before + 1)
    told = [event for event in await timed.audit.timeline(cluster) if event.kind == "certificate.changed"]
    assert told[-1].detail["before"] == "ab" * 32


async def test_an_edge_of_another_generation_is_superseded(timed: Store) -> None:
    cluster = await timed.create()
    await timed.wishes.request_recreation(cluster, actor=ACTOR, new_hardware=True)
    row = await timed.row(cluster)
    with pytest.raises(Superseded):
        await report(timed, cluster, certificate=certificate())
    with pytest.raises(Superseded):
        await timed.edge_reports.goodbye(cluster, 1)
    assert await timed.edge_reports.heartbeats([Heartbeat(cluster, 1, observed_revision="old")]) == []
    assert await timed.row(cluster) == row


async def test_a_status_that_does_not_fit_is_refused(store: Store) -> None:
    cluster = await store.create()
    with pytest.raises(Invalid) as refusal:
        await report(store, cluster, {"hosts": "many"})
    assert (refusal.value.code, refusal.value.where) == ("schema_violation", "/hosts")
    with pytest.raises(NotFound):
        await report(store, uuid4())


# --- heartbeats and leases ---------------------------------------------------------------------------------


async def test_heartbeats_renew_and_nudge_what_has_changed(timed: Store) -> None:
    one, two = await timed.create("one"), await timed.create("two")
    first = await timed.edge_reports.heartbeats([Heartbeat(one, 1, 0.5), Heartbeat(two, 1), Heartbeat(uuid4(), 1)])
    assert sorted(first) == sorted([one, two])
    assert (await lease(timed, one)) == Lease(
        state=LeaseState.CURRENT,
        epoch=1,
        last_heard=NOON,
        expires_at=NOON + timedelta(seconds=300),
        clock_offset_seconds=0.5,
    )
    timed.clock.advance(seconds=60)
    assert await timed.edge_reports.heartbeats([Heartbeat(one, 1), Heartbeat(two, 1, observed_revision="abc")]) == [
        two
    ]
    assert await timed.edge_reports.heartbeats([Heartbeat(two, 1, observed_revision="abc")]) == []
    assert (await timed.row(two)).observed_revision == "abc"
    assert (await lease(timed, one)).clock_offset_seconds == 0.5
    assert (await lease(timed, one)).epoch == 1
    assert await timed.edge_reports.heartbeats([]) == []
    assert (await timed.kinds(one)).count("lease.renewed") == 1


async def test_a_heartbeat_raises_no_change(timed: Store) -> None:
    cluster = await timed.create()
    fence = await timed.fence(cluster)
    await timed.edge_reports.heartbeats([Heartbeat(cluster, 1, observed_revision="abc")])
    await timed.steps.check_fence(fence)


async def test_the_last_heartbeat_of_a_batch_counts(timed: Store) -> None:
    cluster = await timed.create()
    beats = [Heartbeat(cluster, 1, observed_revision=revision) for revision in ("a", "b")]
    assert await timed.edge_reports.heartbeats(beats) == [cluster]
    assert (await timed.row(cluster)).observed_revision == "b"


async def listen(store: Store, seconds: int) -> None:
    """A gateway listens for that long."""
    for _ in range(seconds // 10):
        await store.edge_reports.keep_listening()
        store.clock.advance(seconds=10)
    await store.edge_reports.keep_listening()


async def test_silence_expires_a_lease_once_and_a_heartbeat_renews_it(timed: Store) -> None:
    cluster = await timed.create(settings=ClusterSettings(lease_seconds=60))
    await timed.edge_reports.heartbeats([Heartbeat(cluster, 1)])
    await listen(timed, 60)
    assert await timed.edge_reports.expire_leases() == []
    await listen(timed, 10)
    assert await timed.edge_reports.expire_leases() == [cluster]
    assert await timed.edge_reports.expire_leases() == []
    expired = await lease(timed, cluster)
    assert (expired.state, expired.epoch, expired.last_heard) == (LeaseState.EXPIRED, 2, NOON)
    assert await timed.edge_reports.heartbeats([Heartbeat(cluster, 1)]) == [cluster]
    assert (await lease(timed, cluster)).epoch == 3
    kinds = [kind for kind in await timed.kinds(cluster) if kind.startswith("lease")]
    assert kinds == ["lease.renewed", "lease.expired", "lease.renewed"]


async def test_nothing_expires_while_nobody_listens(timed: Store) -> None:
    cluster = await timed.create(settings=ClusterSettings(lease_seconds=60))
    await timed.edge_reports.heartbeats([Heartbeat(cluster, 1)])
    assert await timed.edge_reports.expire_leases() == []
    await timed.edge_reports.keep_listening()
    timed.clock.advance(hours=5)
    assert await timed.edge_reports.expire_leases() == []
    assert (await lease(timed, cluster)).state is LeaseState.CURRENT


async def test_after_an_outage_of_the_centre_every_edge_has_one_full_lease_of_grace(timed: Store) -> None:
    cluster = await timed.create(settings=ClusterSettings(lease_seconds=60))
    await timed.edge_reports.heartbeats([Heartbeat(cluster, 1)])
    await listen(timed, 30)
    timed.clock.advance(hours=5)
    await listen(timed, 60)
    assert await timed.edge_reports.expire_leases() == []
    await listen(timed, 10)
    assert await timed.edge_reports.expire_leases() == [cluster]


async def test_a_gateway_that_listened_in_the_future_listens_anew(timed: Store) -> None:
    """A clock that was 400 days ahead for a while switched the expiry of leases off for as long."""
    cluster = await timed.create(settings=ClusterSettings(lease_seconds=60))
    timed.clock.advance(days=400)
    await timed.edge_reports.keep_listening()
    timed.clock.advance(days=-400)
    await timed.edge_reports.heartbeats([Heartbeat(cluster, 1)])
    await listen(timed, 60)
    assert await timed.edge_reports.expire_leases() == []
    await listen(timed, 10)
    assert await timed.edge_reports.expire_leases() == [cluster]


async def test_an_edge_that_was_heard_in_the_future_has_one_full_lease_of_grace(timed: Store) -> None:
    cluster = await timed.create(settings=ClusterSettings(lease_seconds=60))
    timed.clock.advance(days=400)
    await report(timed, cluster)
    await timed.publish(cluster, Phase.ACTIVE, ready=True)
    await timed.token(cluster, expires_in=timedelta(days=7))
    timed.clock.advance(days=-400)
    assert await timed.edge_reports.mend_future() == [
        "heartbeats",
        "publications",
        "reports of edges",
        "registration tokens",
        "events",
    ]
    assert await timed.edge_reports.mend_future() == ["events"], "those are never changed"
    assert (await timed.row(cluster)).projected_at == timed.clock.at
    assert await timed.edge_access.expire_tokens() == 1
    await listen(timed, 60)
    assert await timed.edge_reports.expire_leases() == []
    await listen(timed, 10)
    assert await timed.edge_reports.expire_leases() == [cluster]


async def test_how_long_the_sweep_stands_still_counts_while_a_gateway_listens(timed: Store) -> None:
    assert await timed.edge_reports.sweep_age() is None
    await listen(timed, 30)
    assert await timed.edge_reports.sweep_age() == timedelta(seconds=30), "since there is somebody who could tell"
    await timed.edge_reports.sweep_ended()
    await listen(timed, 20)
    assert await timed.edge_reports.sweep_age() == timedelta(seconds=20)
    assert (await timed.census.count()).sweep_age == 20.0
    timed.clock.advance(hours=5)
    assert await timed.edge_reports.sweep_age() == timedelta(seconds=20), "the centre was stopped meanwhile"
    await timed.edge_reports.keep_listening()
    assert await timed.edge_reports.sweep_age() == timedelta(0)
    timed.clock.advance(days=400)
    await timed.edge_reports.sweep_ended()
    timed.clock.advance(days=-400)
    await listen(timed, 60)
    assert await timed.edge_reports.sweep_age() == timedelta(seconds=60), "a round in the future is none"


async def test_a_short_gap_is_no_outage(timed: Store) -> None:
    cluster = await timed.create(settings=ClusterSettings(lease_seconds=60))
    await timed.edge_reports.heartbeats([Heartbeat(cluster, 1)])
    await listen(timed, 30)
    timed.clock.advance(seconds=15)
    await listen(timed, 20)
    assert await timed.edge_reports.expire_leases() == [cluster]


async def test_a_changed_lease_counts_from_the_last_heartbeat(timed: Store) -> None:
    cluster = await timed.create(settings=ClusterSettings(lease_seconds=3600))
    await timed.edge_reports.heartbeats([Heartbeat(cluster, 1)])
    await listen(timed, 60)
    await timed.wishes.write_settings(cluster, {"lease_seconds": 30}, actor=ACTOR)
    assert await timed.edge_reports.expire_leases() == [cluster]


async def test_a_lease_moves_once_however_many_sweep(open_store: Callable[..., Store]) -> None:
    clock = DatabaseClock()
    one, two = open_store(clock), open_store(clock)
    cluster = await one.create(settings=ClusterSettings(lease_seconds=60))
    await one.edge_reports.heartbeats([Heartbeat(cluster, 1)])
    await listen(one, 70)
    swept = await asyncio.gather(*(store.edge_reports.expire_leases() for store in (one, two) * 3))
    assert sum(len(batch) for batch in swept) == 1
    assert (await lease(one, cluster)).epoch == 2


async def test_thousands_that_fall_silent_at_once_are_written_a_batch_at_a_time(
    timed: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by one, 10,000 took 42 s of one transaction. PostgreSQL's are cut off after 8 s: they never turned."""
    monkeypatch.setattr("edgewright.adapters.database.edges.edge_reports.BATCH", 8)
    named = [await timed.create(f"one-{number}", settings=ClusterSettings(lease_seconds=60)) for number in range(20)]
    patient = await timed.create("patient", settings=ClusterSettings(lease_seconds=3600))
    for first in range(0, 20, 8):
        await timed.edge_reports.heartbeats([Heartbeat(cluster, 1) for cluster in named[first : first + 8]])
    await timed.edge_reports.heartbeats([Heartbeat(patient, 1)])
    await listen(timed, 70)
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        statements.append(statement)

    engine = timed.database._engine.sync_engine
    listens_for(engine, "before_cursor_execute")(note)
    expired = await timed.edge_reports.expire_leases()
    assert sorted(expired) == sorted(named)
    writes = [one for one in statements if one.startswith(("UPDATE clusters", "INSERT INTO events"))]
    assert len(writes) == 2 * 3
    for cluster in named:
        assert ((await lease(timed, cluster)).epoch, await timed.kinds(cluster)) == (
            2,
            ["cluster.created", "lease.renewed", "lease.expired"],
        )


# --- the end of a cluster ----------------------------------------------------------------------------------


async def test_an_edge_says_once_that_it_is_empty_and_that_it_is_gone(timed: Store) -> None:
    cluster = await timed.create()
    for word in (timed.edge_reports.inventory_empty, timed.edge_reports.goodbye):
        with pytest.raises(Conflict) as refusal:
            await word(cluster, 1)
        assert refusal.value.code == "not_deleting"
    await timed.wishes.request_deletion(cluster, actor=ACTOR)
    fence: Fence = await timed.fence(cluster)
    await timed.edge_reports.inventory_empty(cluster, 1)
    empty_at = timed.clock.at
    timed.clock.advance(minutes=1)
    await timed.edge_reports.inventory_empty(cluster, 1)
    await timed.edge_reports.goodbye(cluster, 1)
    await timed.edge_reports.goodbye(cluster, 1)
    wanted = await timed.steps.read_wanted(cluster)
    assert wanted is not None
    assert (wanted.inventory_empty_at, wanted.detached_at) == (empty_at, timed.clock.at)
    assert wanted.change == fence.change + 2
    assert (await timed.kinds(cluster))[-2:] == ["edge.inventory_empty", "edge.goodbye"]


async def test_a_closed_cluster_takes_goodbyes_only(timed: Store) -> None:
    cluster = await timed.create()
    await timed.wishes.request_deletion(cluster, actor=ACTOR)
    await timed.steps.remove_central_entries(await timed.fence(cluster), StepName.REMOVE_SETUP_STATUS)
    assert await timed.edge_reports.heartbeats([Heartbeat(cluster, 1)]) == []
    with pytest.raises(NotFound):
        await report(timed, cluster)
    await timed.edge_reports.goodbye(cluster, 1)
    with pytest.raises(NotFound):
        await timed.edge_reports.goodbye(uuid4(), 1)
