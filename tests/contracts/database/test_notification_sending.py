"""Notifications are sent in order, again until they are taken, and not for ever."""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

from database_stores import NOON, DatabaseClock, Store
from notification_queue import FAILED, batch, report, rows, set_webhook, settle, told

from edgewright.adapters.database.notifications.fair_queue import MOST_ALIKE
from edgewright.domain.notifications import (
    GIVE_UP_AFTER,
    LONGEST_BACKOFF,
    NotificationType,
)
from edgewright.ports.notifications import Backlog, Batch, Collected, Due, LastDelivery, Outcome


async def test_what_was_taken_does_not_wait_any_more(timed: Store) -> None:
    await set_webhook(timed)
    await report(timed, await timed.create())
    now = await batch(timed)
    assert await settle(timed, now, "") == 0
    after = await batch(timed)
    assert (after.due, after.next_in) == ((), None)
    kept = await timed.webhooks.get()
    assert kept is not None
    assert kept.waiting is None
    assert kept.last == LastDelivery(NOON, NotificationType.JOINED, "press-shop", 204, 1, "")


async def test_what_was_not_taken_rests_longer_and_longer(timed: Store) -> None:
    await set_webhook(timed)
    await report(timed, await timed.create())
    pauses = []
    for _ in range(9):
        await settle(timed, await batch(timed), FAILED)
        resting = await batch(timed)
        assert resting.due == ()
        assert resting.next_in is not None
        pauses.append(resting.next_in)
        timed.clock.advance(seconds=resting.next_in)
    assert pauses == [5, 10, 20, 40, 80, 160, 300, 300, 300]
    kept = await timed.webhooks.get()
    assert kept is not None and kept.last is not None
    assert (kept.last.status, kept.last.attempts, kept.last.problem) == (500, 9, FAILED)
    assert kept.waiting == Backlog(count=1, since=NOON, problem=FAILED)


async def test_it_rests_for_as_long_as_the_receiver_asks(timed: Store) -> None:
    await set_webhook(timed)
    await report(timed, await timed.create())
    now = await batch(timed)
    asked = Outcome(now.due[0].position, 429, "The receiver answered 429.", 900.0)
    await timed.notifications.settle(now.webhook, [asked])
    assert (await batch(timed)).next_in == 900.0
    timed.clock.advance(seconds=900)
    assert len((await batch(timed)).due) == 1


async def test_a_later_one_of_a_cluster_waits_for_the_earlier_and_no_other_cluster_does(timed: Store) -> None:
    await set_webhook(timed)
    first, other = await timed.create("first"), await timed.create("other")
    await report(timed, first, fingerprint="ab" * 32)
    await report(timed, other)
    now = await batch(timed)
    assert names_of(now.due) == [("cluster.certificate_changed", "first"), ("cluster.joined", "other")]
    failed = Outcome(now.due[0].position, 500, FAILED)
    await timed.notifications.settle(now.webhook, [failed, Outcome(now.due[1].position, 204)])
    after = await batch(timed)
    assert (after.due, after.next_in) == ((), 5.0)
    timed.clock.advance(seconds=5)
    again = await batch(timed)
    assert names_of(again.due) == [("cluster.certificate_changed", "first")]
    await settle(timed, again, "")
    assert names_of((await batch(timed)).due) == [("cluster.joined", "first")]


def names_of(due: tuple[Due, ...]) -> list[tuple[str, str]]:
    return [(each.body.type.value, each.body.data.cluster.name) for each in due]


async def test_those_that_were_tried_least_come_first(timed: Store) -> None:
    await set_webhook(timed)
    for number in range(4):
        await report(timed, await timed.create(f"one-{number}"))
    await settle(timed, await batch(timed, 2), FAILED)
    timed.clock.advance(seconds=5)
    assert [each.attempts for each in (await batch(timed, 3)).due] == [0, 0, 1]


async def test_after_three_days_it_is_given_up_and_the_timeline_says_so(timed: Store) -> None:
    await set_webhook(timed)
    cluster = await timed.create()
    await report(timed, cluster)
    timed.clock.advance(days=9)  # nobody was there to try: that does not count
    assert await settle(timed, await batch(timed), FAILED) == 0
    timed.clock.advance(seconds=GIVE_UP_AFTER.total_seconds() - 1)
    assert await settle(timed, await batch(timed), FAILED) == 0
    timed.clock.advance(seconds=LONGEST_BACKOFF.total_seconds())
    assert await settle(timed, await batch(timed), FAILED) == 1
    assert await rows(timed) == 0
    event = (await timed.audit.timeline(cluster))[-1]
    assert (event.kind, event.detail["attempts"], event.detail["status"]) == ("notification.given_up", 3, 500)
    assert FAILED in event.message
    assert (await batch(timed)).due == ()  # and is no news for the webhook itself


async def test_what_waits_behind_one_that_is_given_up_was_refused_with_it(timed: Store) -> None:
    await set_webhook(timed)
    poison = await timed.create("poison")
    await report(timed, poison, fingerprint="ab" * 32)  # two: another certificate, and joined
    await refuse(timed, poison)
    timed.clock.advance(days=2)
    await report(timed, poison, fingerprint="cd" * 32)
    await timed.notifications.collect()
    timed.clock.advance(days=1)
    assert await refuse(timed, poison) == 1
    assert await refuse(timed, poison) == 1  # joined, as old, at its first try
    assert await refuse(timed, poison) == 0  # two days younger
    timed.clock.advance(days=2)
    assert await refuse(timed, poison) == 1
    told = [each for each in await timed.audit.timeline(poison) if each.kind == "notification.given_up"]
    assert [each.message.split(" gave up on the notification ")[1].split(" ", 1)[1] for each in told] == [
        f"after 2 tries in three days. {FAILED}",
        f"after 1 try in three days. {FAILED}",
        f"after 2 tries in three days. {FAILED}",
    ]


async def refuse(store: Store, poison: UUID) -> int:
    """Takes what there is of all others, at least one, and nothing of a cluster; how many were given up."""
    await report(store, await store.create(f"sound-{uuid4().hex[:8]}"))
    now = await batch(store)
    outcomes = [
        Outcome(each.position, 500, FAILED) if each.body.data.cluster.uuid == poison else Outcome(each.position, 204)
        for each in now.due
    ]
    return await store.notifications.settle(now.webhook, outcomes)


async def test_a_receiver_that_takes_nothing_for_three_days_holds_no_endless_queue(timed: Store) -> None:
    await set_webhook(timed)
    for number in range(5):
        await report(timed, await timed.create(f"old-{number}"))
    await settle(timed, await batch(timed, 2), FAILED)
    timed.clock.advance(seconds=GIVE_UP_AFTER.total_seconds() - 1)
    await report(timed, await timed.create("young"))
    assert await timed.notifications.collect() == Collected(new=1, waiting=6)
    timed.clock.advance(days=4)
    assert await timed.notifications.collect() == Collected(waiting=6), "nobody has tried: it may be back"
    await settle(timed, await batch(timed, 1), FAILED)
    assert await timed.notifications.collect() == Collected(given_up=6)
    told = [each for each in await timed.audit.events(after=0) if each.kind == "notification.given_up"]
    assert sorted(each.detail["attempts"] for each in told) == [0, 0, 0, 1, 1, 1]  # type: ignore[type-var] # integers
    assert all(FAILED in each.message for each in told)


async def test_a_receiver_that_takes_some_is_given_time_for_the_others(timed: Store) -> None:
    await set_webhook(timed)
    for name in ("taken", "refused", "waiting"):
        await report(timed, await timed.create(name))
    await settle(timed, await batch(timed, 2), FAILED)
    timed.clock.advance(days=4)
    now = await batch(timed, 2)
    await timed.notifications.settle(
        now.webhook, [Outcome(now.due[0].position, 204), Outcome(now.due[1].position, 500, FAILED)]
    )
    assert await timed.notifications.collect() == Collected(waiting=1)


async def test_a_receiver_that_is_gone_is_sent_nothing_until_the_webhook_is_set_again(timed: Store) -> None:
    await set_webhook(timed)
    cluster = await timed.create()
    await report(timed, cluster)
    await settle(timed, await batch(timed), "The receiver answered 410.", status=410)
    kept = await timed.webhooks.get()
    assert kept is not None and kept.waiting is not None
    assert (kept.stopped_at, kept.waiting.count) == (NOON, 1)
    [event] = [each for each in await timed.audit.events(after=0) if each.kind == "webhook.stopped"]
    assert "https://alerts.example.com" in event.message and "team" not in str(event)
    await report(timed, cluster, fingerprint="ab" * 32)
    assert await timed.notifications.collect() == Collected(new=1, waiting=0)
    timed.clock.advance(hours=1)
    assert await timed.notifications.due(10) == Batch(kept.id, kept.url, kept.secret_sha256, (), None)
    await set_webhook(timed)
    assert [kind for kind, _ in await told(timed)] == [
        NotificationType.JOINED,
        NotificationType.CERTIFICATE_CHANGED,
    ]


async def test_what_a_stopped_webhook_is_not_told_is_given_up_after_three_days(timed: Store) -> None:
    await set_webhook(timed)
    await report(timed, await timed.create("first"))
    await settle(timed, await batch(timed), "The receiver answered 410.", status=410)
    timed.clock.advance(days=1)
    await report(timed, await timed.create("second"))
    await timed.notifications.collect()
    timed.clock.advance(days=2)
    assert (await timed.notifications.collect()).given_up == 1
    timed.clock.advance(days=1)
    assert (await timed.notifications.collect()).given_up == 1
    assert await rows(timed) == 0


async def test_settling_twice_is_settling_once(timed: Store) -> None:
    await set_webhook(timed)
    await report(timed, await timed.create())
    now = await batch(timed)
    await settle(timed, now, "")
    await settle(timed, now, FAILED)
    kept = await timed.webhooks.get()
    assert kept is not None and kept.last is not None
    assert (kept.last.problem, kept.waiting) == ("", None)


async def test_what_waits_is_in_the_census(open_store: Callable[..., Store]) -> None:
    store = open_store(DatabaseClock())
    await set_webhook(store)
    await report(store, await store.create())
    await store.notifications.collect()
    store.clock.advance(minutes=20)
    counted: Any = await store.census.count()
    assert (counted.notifications, counted.oldest_notification) == (1, 1200.0)


async def test_a_cluster_with_much_to_tell_takes_turns_with_those_with_little(timed: Store) -> None:
    await set_webhook(timed)
    loud = await timed.create("loud")
    for number in range(4):
        await report(timed, loud, fingerprint=f"{number}")
    await settle(timed, await batch(timed, 1), "")
    await report(timed, await timed.create("quiet"))
    served = []
    for _ in range(2):
        now = await batch(timed, 1)
        served += [due.body.data.cluster.name for due in now.due]
        await settle(timed, now, "")
    assert served == ["loud", "quiet"]


async def test_many_alike_become_one_that_says_so(timed: Store) -> None:
    await set_webhook(timed)
    loud = await timed.create("loud")
    await report(timed, loud, fingerprint="first")
    for number in range(1, 13):
        timed.clock.advance(minutes=10)
        await report(timed, loud, fingerprint=f"{number}")
        await timed.notifications.collect()
    assert await rows(timed) <= 1 + MOST_ALIKE
    told_of: list[dict[str, Any]] = []
    while (now := await batch(timed, 1)).due:
        told_of += [due.body.data.detail for due in now.due if due.body.type is NotificationType.CERTIFICATE_CHANGED]
        await settle(timed, now, "")
    assert told_of[-1]["fingerprint"] == "12"
    assert sum(1 + detail.get("coalesced", 0) for detail in told_of) == 13
