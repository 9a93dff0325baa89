"""What heartbeats say of windows, of two edges with one identity, and of where the centre is reached."""

from typing import Any
from uuid import UUID

import pytest
from database_stores import ACTOR, Store

from edgewright.domain.check_in import CheckIn
from edgewright.domain.cluster import ClusterSettings, LeaseState
from edgewright.domain.identity import FORK_BREAKS, Link
from edgewright.domain.reach import Door, Reach
from edgewright.errors import Invalid
from edgewright.ports.edge_reports import Heartbeat

OLD, NEW = "https://old.example.com", "https://new.example.com"


async def beat(store: Store, cluster: UUID, **said: Any) -> bool:
    """Whether the workflow wants to know."""
    return cluster in await store.edge_reports.heartbeats([Heartbeat(cluster, 1, **said)])


async def wanted_problem(store: Store, cluster: UUID) -> str | None:
    wanted = await store.steps.read_wanted(cluster)
    assert wanted is not None
    return wanted.identity_problem


async def test_a_fork_is_told_once_stays_and_ends(timed: Store) -> None:
    cluster = await timed.create()
    await beat(timed, cluster, link=Link("x"))
    news = [await beat(timed, cluster, link=Link(f"n{each}", f"p{each}")) for each in range(FORK_BREAKS + 3)]
    assert news == [each == FORK_BREAKS - 1 for each in range(FORK_BREAKS + 3)]
    assert (await timed.kinds(cluster)).count("edge.forked") == 1
    problem = await wanted_problem(timed, cluster)
    assert problem is not None and "a copy of its disk or virtual machine is running" in problem
    last = f"n{FORK_BREAKS + 2}"
    assert not await beat(timed, cluster, link=Link("m1", last))
    timed.clock.advance(minutes=10, seconds=1)
    assert await beat(timed, cluster, link=Link("m2", "m1"))
    assert (await wanted_problem(timed, cluster), (await timed.kinds(cluster))[-1]) == (None, "edge.fork_ended")


async def test_new_hardware_begins_without_what_the_old_one_said(timed: Store) -> None:
    cluster = await timed.create()
    for each in range(FORK_BREAKS + 1):
        await beat(timed, cluster, link=Link(f"n{each}", f"p{each}"), reach=Reach(OLD), is_where_wanted=True)
    assert await wanted_problem(timed, cluster)
    await timed.wishes.request_recreation(cluster, actor=ACTOR, new_hardware=True)
    row = await timed.row(cluster)
    assert (await wanted_problem(timed, cluster), row.reach, row.proven_url) == (None, None, None)


async def test_a_proven_move_raises_the_change_so_that_no_nudge_is_needed(timed: Store) -> None:
    cluster = await timed.create()
    before = (await timed.row(cluster)).change
    await beat(timed, cluster)
    assert not await beat(timed, cluster, reach=Reach(OLD, "ab" * 32), is_where_wanted=True, is_usual=True)
    assert (await timed.row(cluster)).change == before, "what is rendered names that already"
    assert not await beat(timed, cluster, reach=Reach(OLD, "ab" * 32, "It is away."))
    assert await beat(timed, cluster, reach=Reach(NEW), is_where_wanted=True)
    row = await timed.row(cluster)
    assert (row.reach, row.proven_url, row.change) == (Reach(NEW), NEW, before + 1)
    assert not await beat(timed, cluster), "an agent that says nothing of it changes nothing"
    assert (await timed.row(cluster)).reach == Reach(NEW)
    assert (await timed.kinds(cluster)).count("edge.moved") == 1


async def test_an_edge_that_asks_flux_is_rendered_anew_and_not_by_turns(timed: Store) -> None:
    """Each change is a commit: one that says this and that with each heartbeat makes one an hour."""
    cluster = await timed.create()
    before = (await timed.row(cluster)).change
    await beat(timed, cluster)
    timed.clock.advance(days=400)
    assert not await beat(timed, cluster, asks_flux=False), "that is what is rendered already"
    timed.clock.advance(days=-400)
    assert await beat(timed, cluster, asks_flux=True), "a clock that was wrong for a while holds nothing back"
    for says in (None, False, True, False):
        timed.clock.advance(minutes=10)
        assert not await beat(timed, cluster, asks_flux=says)
    row = await timed.row(cluster)
    assert (row.asks_flux, row.change) == (True, before + 1)
    timed.clock.advance(minutes=20)
    assert await beat(timed, cluster, asks_flux=False)
    row = await timed.row(cluster)
    assert (row.asks_flux, row.change) == (False, before + 2)
    told = [kind for kind in await timed.kinds(cluster) if kind.startswith("edge.fetching")]
    assert told == ["edge.fetching_asked", "edge.fetching_unasked"]
    await timed.wishes.request_recreation(cluster, actor=ACTOR, new_hardware=True)
    assert (await timed.row(cluster)).asks_flux is False


async def test_who_is_elsewhere_is_listed_by_name(timed: Store) -> None:
    named = {name: await timed.commissioned(name) for name in ("c-there", "b-old", "a-silent", "d-alone")}
    for name in ("c-there", "b-old", "a-silent"):
        await timed.registered(named[name], uid=name, token_id=name)
    await beat(timed, named["c-there"], reach=Reach(NEW, "ab" * 32))
    await beat(timed, named["b-old"], reach=Reach(NEW, None, "It is untrusted."))
    found = await timed.edge_reports.elsewhere(Door(NEW))
    assert [each.name for each in found] == ["a-silent", "c-there"]
    assert (found[0].reach, found[1].reach) == (None, Reach(NEW, "ab" * 32))
    assert [each.name for each in await timed.edge_reports.elsewhere(Door(OLD))] == ["a-silent", "b-old", "c-there"]


async def test_a_lease_does_not_end_outside_of_a_window(timed: Store) -> None:
    """It is noon."""
    settings = ClusterSettings(lease_seconds=300, check_in=CheckIn(windows=("11:00-13:00",)))
    cluster = await timed.create(settings=settings)
    timed.clock.advance(minutes=58)
    await beat(timed, cluster)
    for _ in range(22 * 4):
        timed.clock.advance(minutes=15)
        assert await _listened(timed, seconds=0) == []
    wanted = await timed.steps.read_wanted(cluster)
    assert wanted is not None and wanted.window_opens_at is not None
    assert wanted.review_at is not None and wanted.review_at > wanted.window_opens_at
    expired = []
    for _ in range(36):
        expired.append(await _listened(timed))
    assert expired == [[]] * 36, "four minutes after the next one has opened"
    for _ in range(12):
        expired.append(await _listened(timed))
    assert [each for some in expired for each in some] == [cluster]
    assert (await timed.row(cluster)).lease.state is LeaseState.EXPIRED


async def _listened(store: Store, *, seconds: float = 10) -> list[UUID]:
    """The leases that have expired after so many seconds of listening."""
    store.clock.advance(seconds=seconds)
    await store.edge_reports.keep_listening()
    return list(await store.edge_reports.expire_leases())


async def test_a_time_zone_that_is_not_there_is_refused_through_every_door(store: Store) -> None:
    wrong = {"check_in": {"windows": ["11:00-13:00"], "time_zone": "Europe/Atlantis"}}
    with pytest.raises(Invalid) as refusal:
        await store.create(settings=ClusterSettings.model_validate(wrong))
    assert refusal.value.code == "time_zone_unknown"
    cluster = await store.create()
    with pytest.raises(Invalid):
        await store.wishes.write_settings(cluster, wrong, actor=ACTOR)
    with pytest.raises(Invalid) as refusal:
        await store.wishes.write_settings(cluster, {"check_in": {"windows": ["noon"]}}, actor=ACTOR)
    assert (refusal.value.code, refusal.value.where) == ("schema_violation", "/check_in/windows/0")
