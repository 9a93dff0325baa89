"""Lists of clusters: what they show, in which order, and page by page."""

import base64
import time
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from database_stores import ACTOR, NOON, Store
from sqlalchemy import insert, select

from edgewright.adapters.database.tables import clusters
from edgewright.domain.cluster import ClusterSettings, Condition, ConditionStatus, ConditionType, Phase
from edgewright.errors import Invalid
from edgewright.ports.clusters import ClusterFilter
from edgewright.ports.edge_reports import Heartbeat


async def names(store: Store, **wishes: object) -> list[str]:
    """All lines that a filter shows, taken in pages of two."""
    found: list[str] = []
    after = None
    while True:
        page = await store.directory.page(ClusterFilter(**{"limit": 2, **wishes}, after=after))  # type: ignore[arg-type] # keyword tests
        found += [item.name for item in page.items]
        after = page.next
        if after is None:
            return found


def cursor(text: str) -> str:
    """What a client sends who makes cursors by hand."""
    return base64.urlsafe_b64encode(text.encode()).decode()


async def four(store: Store) -> dict[str, UUID]:
    """Four clusters that differ in all that a list sorts and filters by."""
    made: dict[str, UUID] = {}
    for name, labels in (
        ("delta", {"site": "a"}),
        ("Bravo", {"site": "a", "line": "1"}),
        ("alpha", {}),
        ("Charlie", {}),
    ):
        made[name] = await store.create(name, settings=ClusterSettings(labels=labels))
        store.clock.advance(minutes=1)
    available = Condition(
        type=ConditionType.AVAILABLE, status=ConditionStatus.TRUE, reason="LeaseCurrent", since=NOON
    )
    await store.publish(made["delta"], Phase.ACTIVE, ready=True, conditions=(available,))
    await store.publish(made["alpha"], Phase.AWAITING_BOOTSTRAP, ready=True, waiting_for="the bootstrap")
    for name in ("Charlie", "delta"):
        await store.edge_reports.heartbeats([Heartbeat(made[name], 1)])
        store.clock.advance(minutes=1)
    return made


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("name", ["alpha", "Bravo", "Charlie", "delta"]),
        ("-name", ["delta", "Charlie", "Bravo", "alpha"]),
        ("created", ["delta", "Bravo", "alpha", "Charlie"]),
        ("-created", ["Charlie", "alpha", "Bravo", "delta"]),
        ("-last_heard", ["delta", "Charlie"]),
    ],
)
async def test_pages_continue_in_order(timed: Store, sort: str, order: list[str]) -> None:
    await four(timed)
    assert (await names(timed, sort=sort))[: len(order)] == order


async def test_clusters_that_were_never_heard_are_shown_too(timed: Store) -> None:
    await four(timed)
    shown = await names(timed, sort="last_heard")
    assert shown[2:] == ["Charlie", "delta"]
    assert sorted(shown[:2]) == ["Bravo", "alpha"]


async def test_equal_sort_values_neither_repeat_nor_hide_lines(timed: Store) -> None:
    made = {await timed.create(f"shop-{number}") for number in range(7)}
    assert made
    for sort in ("phase", "-phase", "created", "-last_heard"):
        shown = await names(timed, sort=sort)
        assert sorted(shown) == [f"shop-{number}" for number in range(7)]


async def test_filters_choose_lines(timed: Store) -> None:
    await four(timed)
    assert await names(timed, phase=Phase.ACTIVE) == ["delta"]
    assert await names(timed, ready=True) == ["alpha", "delta"]
    assert await names(timed, ready=False) == ["Bravo", "Charlie"]
    assert await names(timed, available=True) == ["delta"]
    assert await names(timed, available=False) == ["alpha", "Bravo", "Charlie"]
    assert await names(timed, labels={"site": "a"}) == ["Bravo", "delta"]
    assert await names(timed, labels={"site": "a", "line": "1"}) == ["Bravo"]
    assert await names(timed, labels={"site": "b"}) == []
    assert await names(timed, name="HA") == ["alpha", "Charlie"]
    assert await names(timed, name="%") == []


async def test_removed_and_deleted_clusters_are_shown_when_asked_for(timed: Store) -> None:
    made = await four(timed)
    await timed.wishes.request_removal(made["alpha"], actor=ACTOR)
    await timed.publish(made["alpha"], Phase.REMOVED, ready=False)
    assert await names(timed) == ["Bravo", "Charlie", "delta"]
    assert await names(timed, phase=Phase.REMOVED) == ["alpha"]


async def test_a_line_shows_what_was_published(timed: Store) -> None:
    made = await four(timed)
    page = await timed.directory.page(ClusterFilter(name="alpha"))
    [line] = page.items
    assert (line.uuid, line.name, line.phase, line.ready) == (made["alpha"], "alpha", Phase.AWAITING_BOOTSTRAP, True)
    assert (line.available, line.waiting_for, line.generation) == ("Unknown", "the bootstrap", 1)
    assert (line.created_at, line.last_heard) == (NOON + timedelta(minutes=2), None)
    assert page.next is None


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        (ClusterFilter(sort="colour"), "sort_invalid"),
        (ClusterFilter(after="!"), "after_invalid"),
        (ClusterFilter(after="W10="), "after_invalid"),
        (ClusterFilter(after=cursor("[" * 30_000)), "after_invalid"),
        (ClusterFilter(after=cursor(f'["name", "\\ud800", "{uuid4()}"]')), "after_invalid"),
        (ClusterFilter(after=cursor(f'["name", "\\u0000", "{uuid4()}"]')), "after_invalid"),
        (
            ClusterFilter(after=cursor(f'["created", "0001-01-01T00:00:00+23:59", "{uuid4()}"]'), sort="created"),
            "after_invalid",
        ),
        (ClusterFilter(name="\0nothing"), "name_invalid"),
        (ClusterFilter(limit=0), "limit_invalid"),
        (ClusterFilter(limit=501), "limit_invalid"),
    ],
)
async def test_a_wish_that_cannot_be_met_is_refused(store: Store, wish: ClusterFilter, code: str) -> None:
    with pytest.raises(Invalid) as refusal:
        await store.directory.page(wish)
    assert refusal.value.code == code


async def test_a_continuation_belongs_to_its_sort(timed: Store) -> None:
    await four(timed)
    page = await timed.directory.page(ClusterFilter(limit=1, sort="name"))
    with pytest.raises(Invalid):
        await timed.directory.page(ClusterFilter(limit=1, sort="-name", after=page.next))


def stated(kind: ConditionType, status: ConditionStatus, reason: str, message: str = "") -> Condition:
    return Condition(type=kind, status=status, reason=reason, message=message, since=NOON)


HEARD = stated(ConditionType.AVAILABLE, ConditionStatus.TRUE, "LeaseCurrent")
APPLIED = stated(ConditionType.SYNCED, ConditionStatus.TRUE, "UpToDate")
LIVES: dict[str, tuple[Condition, ...]] = {
    "a-well": (HEARD, APPLIED),
    "b-new": (),
    "c-paused": (HEARD, APPLIED, stated(ConditionType.PAUSED, ConditionStatus.TRUE, "PausedByOperator")),
    "d-silent": (
        stated(ConditionType.AVAILABLE, ConditionStatus.UNKNOWN, "LeaseExpired", "Last heard at noon."),
        stated(ConditionType.SYNCED, ConditionStatus.FALSE, "EdgeSilent", "It is silent since."),
    ),
    "e-ill": (HEARD, stated(ConditionType.SYNCED, ConditionStatus.FALSE, "ApplyFailed", "Flux cannot apply x.")),
    "f-blocked": (HEARD, APPLIED, stated(ConditionType.BLOCKED, ConditionStatus.TRUE, "TemplateInvalid", "Mend it.")),
}


async def lives(store: Store) -> None:
    """One cluster in each kind of trouble, and one in none; made in the order of their names."""
    for name, conditions in LIVES.items():
        cluster = await store.create(name)
        if conditions:
            await store.publish(cluster, Phase.ACTIVE, ready=True, conditions=conditions)
        if name == "c-paused":
            await store.wishes.set_paused(cluster, paused=True, reason="freeze", actor=ACTOR)


async def test_lines_say_blocked_synced_healthy_and_paused(store: Store) -> None:
    await lives(store)
    page = await store.directory.page(ClusterFilter())
    said = {line.name: (line.blocked, line.synced.value, line.healthy.value, line.paused) for line in page.items}
    assert said == {
        "a-well": (False, "True", "True", False),
        "b-new": (False, "Unknown", "Unknown", False),
        "c-paused": (False, "True", "True", True),
        "d-silent": (False, "False", "Unknown", False),
        "e-ill": (False, "False", "False", False),
        "f-blocked": (True, "True", "False", False),
    }


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("trouble", "f-blocked e-ill d-silent c-paused a-well b-new"),
        ("-trouble", "b-new a-well c-paused d-silent e-ill f-blocked"),
        ("blocked", "f-blocked a-well b-new c-paused d-silent e-ill"),
        ("healthy", "e-ill f-blocked b-new d-silent a-well c-paused"),
        ("synced", "d-silent e-ill b-new a-well c-paused f-blocked"),
        ("paused", "c-paused a-well b-new d-silent e-ill f-blocked"),
    ],
)
async def test_trouble_comes_first_page_by_page(store: Store, sort: str, order: str) -> None:
    await lives(store)
    assert await names(store, sort=sort) == order.split()


async def test_lists_are_filtered_by_trouble(store: Store) -> None:
    await lives(store)
    assert await names(store, blocked=True) == ["f-blocked"]
    assert await names(store, blocked=False, paused=False, healthy=ConditionStatus.TRUE) == ["a-well"]
    assert await names(store, paused=True) == ["c-paused"]
    assert await names(store, healthy=ConditionStatus.FALSE) == ["e-ill", "f-blocked"]
    assert await names(store, healthy=ConditionStatus.UNKNOWN) == ["b-new", "d-silent"]
    assert await names(store, synced=ConditionStatus.FALSE) == ["d-silent", "e-ill"]


async def test_a_line_says_what_the_cluster_waits_for_though_no_step_waits(store: Store) -> None:
    await lives(store)
    page = await store.directory.page(ClusterFilter())
    assert [line.waiting_for for line in page.items] == [
        "",
        "The commissioning has not begun yet.",
        "",
        "Last heard at noon.",
        "Flux cannot apply x.",
        "Mend it.",
    ]


async def test_a_page_of_ten_thousand_clusters_is_quick(store: Store) -> None:
    cluster = await store.create("first", settings=ClusterSettings(labels={"site": "a"}))
    async with store.database.write() as connection:
        row = dict((await connection.execute(select(clusters).where(clusters.c.uuid == cluster))).mappings().one())
        copies = [
            {**row, "uuid": uuid4(), "name": f"c{number}", "name_key": f"c{number}", "trouble": number % 5}
            for number in range(10_000)
        ]
        await connection.execute(insert(clusters), copies)
    spent: list[float] = []
    after = None
    for _ in range(5):
        started = time.process_time()
        page = await store.directory.page(ClusterFilter(after=after))
        spent.append(time.process_time() - started)
        after = page.next
        assert len(page.items) == 100
    assert min(spent) < 0.05
    for wish in (
        {"sort": "trouble"},
        {"sort": "-trouble"},
        *({"sort": sort} for sort in ("blocked", "healthy", "synced", "paused")),
        {"sort": "trouble", "blocked": True},
        {"healthy": ConditionStatus.FALSE, "synced": ConditionStatus.FALSE, "paused": True},
    ):
        started = time.process_time()
        await store.directory.page(ClusterFilter(**wish))  # type: ignore[arg-type] # keyword tests
        assert time.process_time() - started < 20 * max(min(spent), 0.005), wish
