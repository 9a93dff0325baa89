"""The webhook, and what is told to it: none is lost, and none is found twice."""

import asyncio

import pytest
from database_stores import ACTOR, NOON, Store, digest
from notification_queue import FAILED, URL, batch, block, report, rows, set_webhook, settle, told

from edgewright.domain.cluster import (
    ClusterSettings,
    ConditionStatus,
    Role,
    StepName,
)
from edgewright.domain.notifications import (
    NotificationFacts,
    NotificationType,
    NotifiedCluster,
)
from edgewright.ports.edge_reports import Heartbeat
from edgewright.ports.notifications import Backlog, Collected

# --- the webhook ------------------------------------------------------------------------------------------------


async def test_there_is_no_webhook_until_one_is_set(timed: Store) -> None:
    assert await timed.webhooks.get() is None
    assert await timed.notifications.due(1) is None
    assert await timed.notifications.collect() == Collected()
    assert not await timed.webhooks.remove(actor=ACTOR)


async def test_a_webhook_is_kept_without_its_secret_and_told_of_without_its_path(timed: Store) -> None:
    identity = await set_webhook(timed)
    kept = await timed.webhooks.get()
    assert kept is not None
    assert (kept.id, kept.url, kept.created_at, kept.last, kept.waiting) == (identity, URL, NOON, None, None)
    assert kept.secret_sha256 == digest(str(identity))
    [event] = [each for each in await timed.audit.events(after=0) if each.kind.startswith("webhook.")]
    assert (event.kind, event.actor, event.cluster) == ("webhook.set", ACTOR, None)
    assert "https://alerts.example.com" in event.message
    assert "hook" not in event.message.replace("webhook", "") and "team" not in str(event)


async def test_what_happened_before_the_first_webhook_is_not_told(timed: Store) -> None:
    await report(timed, await timed.create("before"))
    await set_webhook(timed)
    await report(timed, await timed.create("after"))
    assert await told(timed) == [(NotificationType.JOINED, "after")]


async def test_another_webhook_gets_what_the_one_before_has_not_taken(timed: Store) -> None:
    await set_webhook(timed)
    await report(timed, await timed.create("late"))
    await settle(timed, await batch(timed), FAILED)
    second = await set_webhook(timed, "https://other.example.com")
    now = await batch(timed)
    assert (now.webhook, now.url, [each.attempts for each in now.due]) == (second, "https://other.example.com", [0])
    kept = await timed.webhooks.get()
    assert kept is not None
    assert (kept.last, kept.waiting) == (None, Backlog(count=1, since=NOON, problem=""))


async def test_a_removed_webhook_drops_what_waits_and_its_late_outcomes(timed: Store) -> None:
    await set_webhook(timed)
    await report(timed, await timed.create())
    now = await batch(timed)
    assert await timed.webhooks.remove(actor=ACTOR)
    assert (await timed.webhooks.get(), await timed.notifications.due(1), await rows(timed)) == (None, None, 0)
    await settle(timed, now, "")
    await set_webhook(timed)
    assert (await batch(timed)).due == ()
    assert (await timed.webhooks.get()).last is None  # type: ignore[union-attr] # it was set


async def test_outcomes_of_a_webhook_that_was_replaced_change_nothing(timed: Store) -> None:
    await set_webhook(timed)
    await report(timed, await timed.create())
    now = await batch(timed)
    await set_webhook(timed)
    await settle(timed, now, "")
    assert [each.event for each in (await batch(timed)).due] == [each.event for each in now.due]


# --- what is told -----------------------------------------------------------------------------------------------


async def test_everything_that_an_operator_waits_for_is_told_in_order(timed: Store) -> None:
    await set_webhook(timed)
    cluster = await timed.create(settings=ClusterSettings(lease_seconds=60))
    await block(timed, cluster, "The name is taken.")
    await block(timed, cluster, "", ConditionStatus.FALSE)
    await report(timed, cluster, fingerprint="ab" * 32)
    await timed.edge_reports.keep_listening()
    for _ in range(9):
        timed.clock.advance(seconds=10)
        await timed.edge_reports.keep_listening()
    assert await timed.edge_reports.expire_leases() == [cluster]
    await timed.edge_reports.heartbeats([Heartbeat(cluster=cluster, generation=1)])
    await report(timed, cluster, fingerprint="cd" * 32)
    assert [kind for kind, _ in await told(timed)] == [
        NotificationType.BLOCKED,
        NotificationType.CERTIFICATE_CHANGED,
        NotificationType.JOINED,
        NotificationType.UNAVAILABLE,
        NotificationType.RECOVERED,
        NotificationType.CERTIFICATE_CHANGED,
    ]


async def test_a_deleted_cluster_is_told_of_by_its_name(timed: Store) -> None:
    await set_webhook(timed)
    cluster = await timed.create("gone")
    await timed.wishes.request_deletion(cluster, actor=ACTOR)
    await timed.steps.remove_central_entries(await timed.fence(cluster), StepName.REMOVE_SETUP_STATUS)
    await timed.create("gone")  # the name is free, and another cluster has it
    [due] = (await batch(timed)).due
    facts = NotificationFacts(cluster=NotifiedCluster(uuid=cluster, name="gone"), message=due.body.data.message)
    assert (due.body.type, due.body.data) == (NotificationType.DELETED, facts)


async def test_a_notification_is_its_event_with_the_facts_that_are_meant_for_others(timed: Store) -> None:
    await set_webhook(timed)
    cluster = await timed.create()
    await report(timed, cluster, fingerprint="ab" * 32)
    [event] = [each for each in await timed.audit.timeline(cluster) if each.kind == "certificate.changed"]
    [due] = (await batch(timed)).due
    assert (due.event, due.position, due.body.timestamp) == (event.id, event.position, event.at)
    assert due.body.data.message == event.message
    assert due.body.data.detail == event.detail
    assert set(due.body.data.detail) == {"fingerprint", "before", "not_after"}


async def test_an_edge_joins_once_whichever_way_it_is_heard_first(timed: Store) -> None:
    await set_webhook(timed)
    await timed.joined("by-credential")
    cluster = await timed.joined("again")
    await report(timed, cluster)
    await timed.edge_access.record_use((await timed.credential(cluster, Role.AGENT)).id)
    assert await told(timed) == [(NotificationType.JOINED, name) for name in ("by-credential", "again")]


async def test_other_hardware_joins_again(timed: Store) -> None:
    cluster = await timed.joined()
    await set_webhook(timed)
    await timed.wishes.request_recreation(cluster, actor=ACTOR, new_hardware=True)
    await timed.register(await timed.token(cluster, "t2"), uid="uid-2", secrets="second")
    await timed.edge_access.record_use((await timed.credential(cluster, Role.FLUX)).id)
    assert [kind for kind, _ in await told(timed)] == [NotificationType.JOINED]


async def test_blocked_is_told_once_and_again_for_another_reason(timed: Store) -> None:
    await set_webhook(timed)
    cluster = await timed.create()
    for sentence in ("The name is taken.", "The name is taken.", "The address is taken."):
        await block(timed, cluster, sentence)
    messages = []
    while due := (now := await batch(timed)).due:
        messages += [each.body.data.message for each in due]
        await settle(timed, now, "")
    assert messages == ["Action required. The name is taken.", "Action required. The address is taken."]


async def test_a_long_sentence_is_cut_off(timed: Store) -> None:
    await set_webhook(timed)
    cluster = await timed.create()
    await block(timed, cluster, "ü\x01" * 100_000)
    [due] = (await batch(timed)).due
    assert len(due.body.octets()) < 20_000
    assert due.body.data.message.endswith("…")


async def test_a_projection_that_is_published_twice_tells_once(timed: Store) -> None:
    await set_webhook(timed)
    cluster = await timed.create()
    await block(timed, cluster, "The name is taken.")
    row = await timed.row(cluster)
    assert row.projection is not None
    await timed.steps.project(cluster, row.projection, [])
    assert await told(timed) == [(NotificationType.BLOCKED, "press-shop")]


# --- finding them -----------------------------------------------------------------------------------------------


async def test_each_event_is_found_once_also_among_many_others(timed: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgewright.adapters.database.notifications.notifications.READ_AT_ONCE", 3)
    await set_webhook(timed)
    for number in range(8):
        await report(timed, await timed.create(f"one-{number}"))
    assert await timed.notifications.collect() == Collected(new=8, waiting=8)
    assert await timed.notifications.collect() == Collected(new=0, waiting=8)
    assert sorted(name for _, name in await told(timed)) == [f"one-{number}" for number in range(8)]


async def test_two_who_look_at_once_find_nothing_twice(two: tuple[Store, Store]) -> None:
    await set_webhook(two[0])
    for number in range(5):
        await report(two[0], await two[0].create(f"one-{number}"))
    found = await asyncio.gather(*(two[number % 2].notifications.collect() for number in range(6)))
    assert (sum(each.new for each in found), await rows(two[0])) == (5, 5)


async def test_what_is_written_while_somebody_looks_is_found(two: tuple[Store, Store]) -> None:
    await set_webhook(two[0])

    async def look() -> None:
        for _ in range(20):
            await two[1].notifications.collect()

    async def happen() -> None:
        for number in range(10):
            await report(two[0], await two[0].create(f"one-{number}"))

    await asyncio.gather(look(), happen(), happen_elsewhere(two[1]))
    await two[1].notifications.collect()
    assert await rows(two[0]) == 20


async def happen_elsewhere(store: Store) -> None:
    for number in range(10):
        await report(store, await store.create(f"other-{number}"))
