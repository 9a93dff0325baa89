"""Upgrades: admitted under a limit, proven by what the edge says, given up when nothing proves them."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest
from database_stores import ACTOR, Store
from shared_statements import open_database
from sqlalchemy import select, update
from upgraded_store import (
    ANCHOR,
    FLUX,
    NEW,
    OLD,
    agents,
    committed,
    heard,
    imported,
    judged,
    only,
    pass_minutes,
    report,
)

from edgewright.adapters.database.tables import clusters, upgrades
from edgewright.domain.upgrades import PATIENCE, AgentTarget, Component, UpgradeState
from edgewright.errors import Conflict, Gone, Invalid, NotFound, Stalled
from edgewright.ports.edge_reports import Heartbeat
from edgewright.ports.upgrades import UpgradeFilter, UpgradeWish


async def deadline_of(database_url: str, cluster: UUID) -> datetime | None:
    statement = select(upgrades.c.deadline).where(upgrades.c.cluster == cluster)
    async with open_database(database_url) as database, database.read() as connection:
        deadline: datetime | None = await connection.scalar(statement)
    return deadline


async def test_a_wanted_version_is_a_wish_of_the_cluster_with_an_event(store: Store) -> None:
    cluster = await heard(store)
    before = await store.row(cluster)
    begun, is_new = await store.upgrades.admit(agents(cluster), actor=ACTOR)
    row = await store.row(cluster)
    assert is_new
    assert (row.wanted.agent, row.upgrading, row.change) == (NEW, Component.AGENT, before.change + 1)
    assert (begun.name, begun.version, begun.before) == ("press-shop", "0.4", OLD.version)
    assert begun.state is UpgradeState.UNDER_WAY and begun.ended_at is None
    assert await only(store, cluster) == begun
    event = (await store.audit.timeline(cluster))[-1]
    assert (event.kind, event.actor) == ("upgrade.begun", ACTOR)
    assert event.message == "The agent of press-shop is to be upgraded to 0.4."


async def test_the_same_again_changes_nothing_and_another_has_to_wait(store: Store) -> None:
    cluster = await heard(store)
    first, _ = await store.upgrades.admit(agents(cluster), actor=ACTOR)
    again, is_new = await store.upgrades.admit(agents(cluster, at_once=1), actor=ACTOR)
    assert (again, is_new) == (first, False)
    for target in (FLUX, AgentTarget(image="centre.example/agent:0.5")):
        with pytest.raises(Conflict) as refused:
            await store.upgrades.admit(UpgradeWish(cluster=cluster, target=target), actor=ACTOR)
        assert refused.value.code == "upgrade_under_way"
    assert (await store.row(cluster)).wanted.flux is None


async def test_the_status_of_the_new_agent_proves_it(store: Store) -> None:
    cluster = await heard(store)
    await store.upgrades.admit(agents(cluster), actor=ACTOR)
    await report(store, cluster, versions={"agent": "0.3.0", "agent-image": OLD.image}, hosts=[])
    assert (await only(store, cluster)).state is UpgradeState.UNDER_WAY
    await report(store, cluster, versions={"agent": "0.4.0", "agent-image": NEW.image})
    ended = await only(store, cluster)
    assert (ended.state, ended.reason) == (UpgradeState.DONE, "")
    row = await store.row(cluster)
    assert (row.upgrading, row.wanted.agent) == (None, NEW)
    assert "upgrade.done" in await store.kinds(cluster)
    again, is_new = await store.upgrades.admit(agents(cluster), actor=ACTOR)
    assert (again.state, is_new) == (UpgradeState.DONE, False)


@pytest.mark.parametrize(
    ("name", "ready", "proven"),
    [
        ("edgewright-flux-v2.7.3", "True", True),
        ("edgewright-flux-v2.7.3", "False", False),
        ("edgewright-flux-v2.7.2", "True", False),
        ("self-link", "True", False),
    ],
)
async def test_flux_is_proven_by_the_driver_of_its_version(store: Store, name: str, ready: str, proven: bool) -> None:
    cluster = await heard(store)
    await imported(store)
    await store.upgrades.admit(UpgradeWish(cluster=cluster, target=FLUX, before="v2.7.0"), actor=ACTOR)
    said = {"name": name, "conditions": [{"type": "Ready", "status": ready, "message": "So it is."}]}
    await report(store, cluster, flux={"kustomizations": [said]})
    assert ((await only(store, cluster)).state is UpgradeState.DONE) is proven


async def test_no_more_than_so_many_are_under_way(store: Store) -> None:
    clusters = [await heard(store, f"press-{number}") for number in range(4)]
    for cluster in clusters[:2]:
        await store.upgrades.admit(agents(cluster, at_once=2), actor=ACTOR)
    with pytest.raises(Conflict) as refused:
        await store.upgrades.admit(agents(clusters[2], at_once=2), actor=ACTOR)
    assert refused.value.code == "upgrade_limit_reached"
    assert (await store.row(clusters[2])).upgrading is None
    await report(store, clusters[0], versions={"agent-image": NEW.image})
    await store.upgrades.admit(agents(clusters[2], at_once=2), actor=ACTOR)
    await store.upgrades.admit(agents(clusters[3]), actor=ACTOR)  # who says no limit has none


async def test_people_at_once_never_admit_more_than_the_limit(store: Store, open_store: Callable[..., Store]) -> None:
    clusters = [await heard(store, f"press-{number}") for number in range(20)]
    others = [store, *(open_store() for _ in range(3))]

    async def try_one(number: int, cluster: UUID) -> bool:
        try:
            await others[number % len(others)].upgrades.admit(agents(cluster, at_once=5), actor=ACTOR)
        except Conflict as refused:
            assert refused.code == "upgrade_limit_reached"
            return False
        return True

    admitted = await asyncio.gather(*(try_one(number, cluster) for number, cluster in enumerate(clusters)))
    assert sum(admitted) == 5
    page = await store.upgrades.page(UpgradeFilter(state=UpgradeState.UNDER_WAY))
    assert len(page.items) == 5


async def test_what_nothing_proves_falls_back_once_it_has_had_its_time(timed: Store) -> None:
    cluster = await heard(timed)
    await pass_minutes(timed, 16, beating=cluster)
    await timed.upgrades.admit(agents(cluster), actor=ACTOR)
    await committed(timed, cluster)
    await pass_minutes(timed, 14, beating=cluster)
    assert await judged(timed) == []
    before = await timed.row(cluster)
    assert before.upgrading is Component.AGENT
    await pass_minutes(timed, 2, beating=cluster)
    assert await judged(timed) == [cluster]
    row = await timed.row(cluster)
    assert (row.wanted.agent, row.upgrading, row.change) == (OLD, None, before.change + 1)
    ended = await only(timed, cluster)
    assert ended.state is UpgradeState.FELL_BACK
    assert ended.reason == "Nothing has proven 0.4 within 15 minutes."
    assert (await timed.kinds(cluster))[-1] == "upgrade.fell_back"
    assert await judged(timed) == []
    _, is_new = await timed.upgrades.admit(agents(cluster), actor=ACTOR)
    assert is_new


async def test_flux_does_not_go_back_and_its_words_are_kept(timed: Store) -> None:
    cluster = await heard(timed)
    await imported(timed)
    await pass_minutes(timed, 16, beating=cluster)
    await timed.upgrades.admit(UpgradeWish(cluster=cluster, target=FLUX, before="v2.7.0"), actor=ACTOR)
    await committed(timed, cluster)
    said = {"name": FLUX.driver, "conditions": [{"type": "Ready", "status": "False", "message": "CRD is refused."}]}
    await report(timed, cluster, flux={"kustomizations": [said]})
    await pass_minutes(timed, 16, beating=cluster)
    assert await judged(timed) == []
    ended = await only(timed, cluster)
    assert ended.state is UpgradeState.FAILED
    assert ended.reason == "Nothing has proven v2.7.3 within 15 minutes. Flux says: CRD is refused."
    row = await timed.row(cluster)
    assert (row.wanted.flux, row.upgrading) == (FLUX, None)


async def test_an_agent_of_which_nobody_knows_the_image_fails_without_going_back(timed: Store) -> None:
    cluster = await heard(timed)
    await pass_minutes(timed, 16, beating=cluster)
    await timed.upgrades.admit(UpgradeWish(cluster=cluster, target=NEW), actor=ACTOR)
    await committed(timed, cluster)
    await pass_minutes(timed, 16, beating=cluster)
    assert await judged(timed) == []
    assert (await only(timed, cluster)).state is UpgradeState.FAILED
    assert (await timed.row(cluster)).wanted.agent == NEW


async def test_time_in_which_the_edge_could_not_have_it_does_not_count(timed: Store) -> None:
    cluster = await heard(timed)
    await pass_minutes(timed, 16, beating=cluster)
    await timed.upgrades.admit(agents(cluster), actor=ACTOR)
    await pass_minutes(timed, 60, beating=cluster)  # its commit is not made
    assert await judged(timed) == []
    await committed(timed, cluster)
    timed.clock.advance(hours=3)  # no gateway listens
    assert await judged(timed) == []
    await pass_minutes(timed, 14)
    assert await judged(timed) == []
    assert (await only(timed, cluster)).state is UpgradeState.UNDER_WAY
    await timed.edge_reports.expire_leases()
    await pass_minutes(timed, 16)
    assert await judged(timed) == [cluster]  # Flux fetches though the agent is silent
    assert (await only(timed, cluster)).reason == "Nothing has proven 0.4 within 15 minutes, and the edge is silent."


async def test_a_deadline_is_written_when_the_time_begins_and_not_at_every_sweep(
    timed: Store, database_url: str
) -> None:
    cluster = await heard(timed)
    await pass_minutes(timed, 1, beating=cluster)
    await timed.upgrades.admit(agents(cluster), actor=ACTOR)
    seen = []
    for _ in range(3):  # its commit is not made
        await pass_minutes(timed, 1, beating=cluster)
        assert await judged(timed) == []
        seen.append(await deadline_of(database_url, cluster))
    assert seen == [None, None, None]
    await committed(timed, cluster)
    begun = timed.clock.at
    for _ in range(3):
        assert await judged(timed) == []
        assert await deadline_of(database_url, cluster) == begun + PATIENCE
        await pass_minutes(timed, 1, beating=cluster)


async def test_versions_that_nobody_can_read_are_the_trouble_of_one_cluster(store: Store, database_url: str) -> None:
    broken, other = await heard(store, "broken"), await heard(store, "other")
    for cluster in (broken, other):
        await store.upgrades.admit(agents(cluster), actor=ACTOR)
    unreadable = update(clusters).where(clusters.c.uuid == broken).values(components={"agent": {"image": 7}})
    async with open_database(database_url) as database, database.write() as connection:
        await connection.execute(unreadable)
    assert set(await store.upgrades.under_way()) == {broken, other}
    with pytest.raises(Stalled) as trouble:
        await store.upgrades.judge(broken)
    assert (trouble.value.code, "7" in trouble.value.detail) == ("components_unreadable", False)
    await report(store, other, versions={"agent-image": NEW.image}, hosts=[])
    assert await store.upgrades.judge(other) is False
    assert (await only(store, other)).state is UpgradeState.DONE


async def test_a_silent_edge_is_upgraded_only_on_demand_and_has_no_deadline_until_it_is_heard(timed: Store) -> None:
    cluster = await heard(timed)
    await pass_minutes(timed, 16)
    assert await timed.edge_reports.expire_leases() == [cluster]
    with pytest.raises(Conflict) as refused:
        await timed.upgrades.admit(agents(cluster), actor=ACTOR)
    assert refused.value.code == "edge_silent"
    await timed.upgrades.admit(agents(cluster, even_if_silent=True), actor=ACTOR)
    await committed(timed, cluster)
    await pass_minutes(timed, 40)
    assert await judged(timed) == []
    await pass_minutes(timed, 1, beating=cluster)
    assert await judged(timed) == []  # from now on it counts
    await committed(timed, cluster)
    await pass_minutes(timed, 14, beating=cluster)
    assert await judged(timed) == []
    await pass_minutes(timed, 2, beating=cluster)
    assert await judged(timed) == [cluster]


async def test_what_cannot_be_upgraded_says_why(store: Store) -> None:
    fresh = await store.commissioned("fresh")
    with pytest.raises(Conflict) as refused:
        await store.upgrades.admit(agents(fresh), actor=ACTOR)
    assert refused.value.code == "edge_not_attached"
    paused = await heard(store, "paused")
    await store.wishes.set_paused(paused, paused=True, reason="inventory", actor=ACTOR)
    with pytest.raises(Conflict) as refused:
        await store.upgrades.admit(agents(paused), actor=ACTOR)
    assert refused.value.code == "paused"
    await store.wishes.request_deletion(paused, actor=ACTOR)
    with pytest.raises(Conflict) as refused:
        await store.upgrades.admit(agents(paused), actor=ACTOR)
    assert refused.value.code == "deleting"
    with pytest.raises(NotFound):
        await store.upgrades.admit(agents(UUID(int=7)), actor=ACTOR)
    assert not issubclass(NotFound, Gone)


async def test_a_fresh_line_new_hardware_and_a_deletion_end_what_was_wanted(store: Store) -> None:
    ends: dict[str, Callable[[UUID], Any]] = {
        "line": lambda cluster: store.registered(cluster, uid="uid-of-line", token_id="again"),
        "hardware": lambda cluster: store.wishes.request_recreation(cluster, actor=ACTOR, new_hardware=True),
        "deletion": lambda cluster: store.wishes.request_deletion(cluster, actor=ACTOR),
    }
    for name, end in ends.items():
        cluster = await heard(store, name, anchor=ANCHOR)
        await store.upgrades.admit(agents(cluster), actor=ACTOR)
        await end(cluster)
        row = await store.row(cluster)
        assert (row.upgrading, row.wanted.agent) == (None, None), name
        assert (await only(store, cluster)).state is UpgradeState.REPLACED, name
        assert "upgrade.replaced" in await store.kinds(cluster)
        assert row.anchor == (None if name == "hardware" else ANCHOR)


async def test_the_anchor_of_the_edge_is_kept_and_rendered_anew_where_a_version_is_wanted(store: Store) -> None:
    cluster = await heard(store)
    before = await store.row(cluster)
    await report(store, cluster, anchor=ANCHOR)
    row = await store.row(cluster)
    assert (row.anchor, row.change) == (ANCHOR, before.change)
    await store.upgrades.admit(agents(cluster), actor=ACTOR)
    other = ANCHOR.replace("0", "1")
    await report(store, cluster, anchor=other)
    assert ((await store.row(cluster)).anchor, (await store.row(cluster)).change) == (other, row.change + 2)


async def test_pages_show_what_is_under_way_first_and_then_the_newest(timed: Store) -> None:
    clusters = {}
    for number in range(5):
        timed.clock.advance(minutes=1)
        clusters[f"press-{number}"] = cluster = await heard(timed, f"press-{number}")
        await timed.upgrades.admit(agents(cluster), actor=ACTOR)
    for name in ("press-4", "press-1", "press-3"):
        await report(timed, clusters[name], versions={"agent-image": NEW.image})
    names: list[str] = []
    after = None
    while True:
        page = await timed.upgrades.page(UpgradeFilter(limit=2, after=after))
        names += [each.name for each in page.items]
        after = page.next
        if after is None:
            break
    assert names == ["press-2", "press-0", "press-4", "press-3", "press-1"]
    assert [each.name for each in (await timed.upgrades.page(UpgradeFilter(component=Component.FLUX))).items] == []
    for wrong in ("x", "bm9uZQ==", "WzEsMiwzLDRd"):
        with pytest.raises(Invalid) as refused:
            await timed.upgrades.page(UpgradeFilter(after=wrong))
        assert refused.value.code == "after_invalid"
    for limit in (0, 501):
        with pytest.raises(Invalid):
            await timed.upgrades.page(UpgradeFilter(limit=limit))


async def test_a_clock_that_was_wrong_keeps_no_upgrade_under_way_for_ever(timed: Store) -> None:
    cluster = await heard(timed)
    timed.clock.advance(days=400)
    await timed.edge_reports.heartbeats([Heartbeat(cluster, 1)])
    await timed.upgrades.admit(agents(cluster), actor=ACTOR)
    timed.clock.advance(days=-400)
    found = await timed.edge_reports.mend_future()
    assert {"upgrades", "deadlines of upgrades"} <= set(found)
