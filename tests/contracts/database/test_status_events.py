"""What the timeline tells of edge statuses: what lasts each time, what comes and goes once for a while."""

from typing import Any
from uuid import UUID

import pytest
from database_stores import ACTOR, Store
from notification_queue import report as report_certificate

from edgewright.domain.edge_status import read_edge_status
from edgewright.domain.event_room import BURST
from edgewright.errors import TooMany
from edgewright.ports.audit import Event
from edgewright.ports.edge_reports import Heartbeat

FAILURES = {"connection refused", "no route"}


def _ready(flux: str) -> dict[str, str]:
    return {"type": "Ready", "status": "False" if flux in FAILURES else "True", "message": flux}


def status(
    *hosts: str, ready: bool = True, flux: str = "stored", revision: str | None = "main@sha1:a", version: str = "v1"
) -> dict[str, Any]:
    said = {
        "hosts": [{"hostname": name, "k8s_version": version, "ready": ready} for name in hosts],
        "flux": {"sources": [{"name": "self-link", "conditions": [_ready(flux)]}]},
        "observed_revision": revision,
    }
    return {field: value for field, value in said.items() if value is not None}


async def report(store: Store, cluster: UUID, body: Any) -> None:
    assert await store.edge_reports.write_status(
        cluster, body, certificate=None, certificate_problem=None, generation=1, actor="agent"
    )
    assert (await store.row(cluster)).edge_status == read_edge_status(body)


async def lines(store: Store, cluster: UUID) -> list[Event]:
    return [event for event in await store.audit.timeline(cluster) if event.kind == "edge.status"]


async def test_an_edge_that_starts_piece_by_piece_is_a_few_lines(timed: Store) -> None:
    """Six reports in a minute and a half, as they were seen after a restart: what failed, that it does not any more,
    and one line for all the rest."""
    cluster = await timed.create("press-shop")
    await report(timed, cluster, status("n1", "n2"))
    timed.clock.advance(hours=1)
    before = len(await lines(timed, cluster))
    for body in (
        status("n1", "n2", flux="connection refused"),
        status("n1", "n2", flux="no route"),
        status("n1", "n2", flux="fetched"),
        status("n1", "n2", flux="dependency is not ready"),
        status("n1", "n2", flux="applying"),
        status("n1", "n2"),
    ):
        timed.clock.advance(seconds=15)
        await report(timed, cluster, body)
    told = (await lines(timed, cluster))[before:]
    assert [line.message.partition(": ")[2] for line in told] == [
        "Flux cannot fetch self-link: connection refused.",
        "source self-link no longer fails.",
        "Flux says of self-link: dependency is not ready.",
    ]


async def test_another_part_that_differs_is_told_at_once(timed: Store) -> None:
    cluster = await timed.create("press-shop")
    await report(timed, cluster, status("n1"))
    timed.clock.advance(seconds=15)
    await report(timed, cluster, status("n1", flux="no route"))
    timed.clock.advance(seconds=15)
    await report(timed, cluster, status("n1", flux="no route", ready=False))
    told = [line.message.partition(": ")[2] for line in await lines(timed, cluster)][1:]
    assert told == ["Flux cannot fetch self-link: no route.", "hosts have become ready or not ready."]


async def test_what_lasts_is_named_whenever_it_changes(timed: Store) -> None:
    cluster = await timed.create("press-shop")
    for body in (
        status("n1"),
        status("n1", "n2"),
        status("n2"),
        status("n2", revision="main@sha1:b"),
        status("n2", revision="main@sha1:b", version="v2"),
    ):
        await report(timed, cluster, body)
        timed.clock.advance(seconds=1)
    told = await lines(timed, cluster)
    assert [line.message.partition(": ")[2] for line in told] == [
        "reported for the first time, with 1 host; main@sha1:a is applied.",
        "host n2 is new.",
        "host n1 is gone.",
        "main@sha1:b is applied.",
        "host n2 is changed.",
    ]
    assert [line.detail["hosts"] for line in told] == [1, 2, 1, 1, 1]


async def test_after_a_while_the_same_is_told_again(timed: Store) -> None:
    cluster = await timed.create("press-shop")
    await report(timed, cluster, status("n1"))
    timed.clock.advance(minutes=1)
    await report(timed, cluster, status("n1", flux="no route"))
    timed.clock.advance(minutes=4, seconds=59)
    await report(timed, cluster, status("n1"))
    told = await lines(timed, cluster)
    assert [line.message.partition(": ")[2] for line in told[1:]] == [
        "Flux cannot fetch self-link: no route.",
        "source self-link no longer fails.",
    ]
    timed.clock.advance(seconds=1)
    await report(timed, cluster, status("n1", flux="no route"))
    assert len(await lines(timed, cluster)) == 4


async def test_other_lines_between_do_not_make_it_speak_again(timed: Store) -> None:
    cluster = await timed.create("press-shop")
    await report(timed, cluster, status("n1"))
    await report(timed, cluster, status("n1", flux="applying"))
    for number in range(3):
        await timed.wishes.set_paused(cluster, paused=True, reason=f"visit {number}", actor=ACTOR)
        await timed.wishes.set_paused(cluster, paused=False, reason="", actor=ACTOR)
    before = len(await lines(timed, cluster))
    await report(timed, cluster, status("n1", flux="fetched"))
    assert len(await lines(timed, cluster)) == before


async def test_the_lines_of_one_cluster_speak_for_no_other(timed: Store) -> None:
    one, two = await timed.create("one"), await timed.create("two")
    for cluster in (one, two):
        await report(timed, cluster, status("n1"))
    for cluster in (one, two):
        await report(timed, cluster, status("n1", flux="no route"))
    assert len(await lines(timed, one)) == len(await lines(timed, two)) == 2


async def report_versions(store: Store, cluster: UUID, first: int, count: int) -> None:
    for number in range(first, first + count):
        await report(store, cluster, status("n1", version=f"v{number}"))


async def test_an_edge_that_reports_without_end_gets_no_endless_timeline(timed: Store) -> None:
    """What it reports is stored all the same, and one line says how much of it has none."""
    cluster = await timed.create("press-shop")
    await report_versions(timed, cluster, 1, 200)
    assert len(await lines(timed, cluster)) == BURST
    timed.clock.advance(minutes=1)
    await report_versions(timed, cluster, 201, 1)
    *_, omitted, newest = await timed.audit.timeline(cluster)
    assert (omitted.kind, omitted.detail) == ("edge.events_omitted", {"omitted": 140})
    assert newest.message == "The edge status of press-shop: host n1 is changed."
    assert len(await lines(timed, cluster)) == BURST + 1


async def test_an_edge_that_falls_quiet_has_its_omissions_told_by_the_next_heartbeat(timed: Store) -> None:
    cluster = await timed.create("press-shop")
    await report_versions(timed, cluster, 1, 63)
    await timed.edge_reports.heartbeats([Heartbeat(cluster, 1)])
    assert (await timed.audit.timeline(cluster))[-1].kind == "edge.status"
    timed.clock.advance(minutes=3)
    for _ in range(2):
        await timed.edge_reports.heartbeats([Heartbeat(cluster, 1)])
    told = [event for event in await timed.audit.timeline(cluster) if event.kind == "edge.events_omitted"]
    assert [event.detail for event in told] == [{"omitted": 3}]


async def test_one_loud_edge_takes_no_room_from_another(timed: Store) -> None:
    loud, quiet = await timed.create("press-shop"), await timed.create("paint-shop")
    await report_versions(timed, loud, 1, 100)
    await report(timed, quiet, status("n1"))
    assert len(await lines(timed, quiet)) == 1


async def test_what_an_operator_reports_is_told_however_much_it_is(timed: Store) -> None:
    cluster = await timed.create("press-shop")
    await report_versions(timed, cluster, 1, 70)
    await timed.edge_reports.write_status(
        cluster, status("n1", version="v0"), certificate=None, certificate_problem=None, generation=None, actor=ACTOR
    )
    assert (await timed.audit.timeline(cluster))[-1].actor == ACTOR


async def test_certificates_that_flip_have_to_wait_and_are_not_put_to_use(timed: Store) -> None:
    cluster = await timed.create("press-shop")
    for number in range(6):
        await report_certificate(timed, cluster, fingerprint=f"{number}")
    with pytest.raises(TooMany) as refusal:
        await report_certificate(timed, cluster, fingerprint="6")
    assert refusal.value.code == "edge_changes_too_often"
    used = (await timed.row(cluster)).certificate
    assert used is not None
    assert used.fingerprint == "5"
    timed.clock.advance(seconds=refusal.value.retry_after)
    await report_certificate(timed, cluster, fingerprint="6")
    changed = [event for event in await timed.audit.timeline(cluster) if event.kind == "certificate.changed"]
    assert len(changed) == 7


def refusing(*names: str, opened: str = "") -> dict[str, Any]:
    refused = [{"namespace": "default", "name": each, "digest": "a" * 8, "message": "It is taken."} for each in names]
    counts = {"opened": len(opened) // 8, "pending": 0, "refused": len(names)}
    return {**status("n1"), "secrets": {"counts": counts, "opened": opened, "pending": "", "refused": refused}}


async def secret_lines(store: Store, cluster: UUID) -> list[tuple[str, str]]:
    told = await store.audit.timeline(cluster)
    return [(event.kind, event.message) for event in told if event.kind.startswith("secret.edge_")]


async def test_a_secret_that_the_edge_refuses_is_told_once_and_so_is_its_end(timed: Store) -> None:
    cluster = await timed.create("press-shop")
    await report(timed, cluster, status("n1"))
    quiet = len(await lines(timed, cluster))
    for body in (refusing(), refusing("db"), refusing("db", opened="b" * 8), refusing(opened="b" * 8)):
        timed.clock.advance(seconds=15)
        await report(timed, cluster, body)
    assert await secret_lines(timed, cluster) == [
        ("secret.edge_refused", "The edge of press-shop does not open default/db (It is taken.)."),
        ("secret.edge_healed", "The edge of press-shop no longer refuses default/db."),
    ]
    assert len(await lines(timed, cluster)) == quiet, "secrets have lines of their own"


async def test_an_edge_that_refuses_and_opens_without_end_fills_no_timeline(timed: Store) -> None:
    cluster = await timed.create("press-shop")
    for number in range(500):
        await report(timed, cluster, refusing(f"db-{number}"))
        timed.clock.advance(seconds=1)
    told = await timed.audit.timeline(cluster, limit=1000)
    assert len(told) < 2 * BURST
