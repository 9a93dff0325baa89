"""What was seen stays when it cannot be seen any more, and only what differs is news."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from scripted_centre import START, QuickClock, Reply, ScriptedCentre, TimeIsUp
from structlog.testing import capture_logs

from edgewright.agent.attachment import CLUSTER_LABEL
from edgewright.agent.observation import Fetched, Host, Kustomized, Released
from edgewright.agent.opening import Opening, Stage
from edgewright.agent.passwords import HeldSecret
from edgewright.agent.sealing_certificate import LARGEST, SealingCertificateSource
from edgewright.agent.watch import Watch
from edgewright.errors import EdgewrightError, Forbidden, Waiting

PEM = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"


class Edge:
    """An edge on which anything may fail."""

    def __init__(self) -> None:
        self.found = [Host("b", False, True), Host("a", True, True)]
        self.namespaces_found = ["line-1", "default"]
        self.fails: dict[str, EdgewrightError] = {}
        self.asked_for_version = 0
        self.applied = "a"
        self.stage = Stage.OPENED
        self.asked_for_openings = 0

    async def hosts(self) -> list[Host]:
        self._may_fail("nodes")
        return self.found

    async def namespaces(self, *, most: int) -> list[str]:
        self._may_fail("namespaces")
        return self.namespaces_found[:most]

    async def sources(self, namespace: str, cluster: str) -> list[Fetched]:
        self._may_fail("flux_sources")
        return [Fetched("self-link", fetched="main@sha1:a")]

    async def kustomizations(self, namespace: str, cluster: str) -> list[Kustomized]:
        self._may_fail("flux")
        return [Kustomized("self-link", "self-link", applied=f"main@sha1:{self.applied}")]

    async def openings(self) -> list[Opening]:
        self.asked_for_openings += 1
        self._may_fail("opened_secrets")
        return [Opening("default", "b", "bbbbbbbb", self.stage), Opening("default", "a", "aaaaaaaa", Stage.OPENED)]

    async def releases(self, namespace: str, cluster: str) -> list[Released]:
        self._may_fail("flux_releases")
        return [Released("edge-cluster", applied="0.2.0")]

    async def version(self) -> str:
        self.asked_for_version += 1
        self._may_fail("version")
        return "v1.33.1"

    async def certificate(self) -> str:
        self._may_fail("sealed_secrets")
        return PEM

    async def held_secret(self, namespace: str, name: str) -> HeldSecret | None:
        self._may_fail("secrets")
        return HeldSecret({}, {CLUSTER_LABEL: "cluster"}, "1", START - timedelta(days=1))

    async def may_change_secret(self, namespace: str, name: str) -> bool:
        return True

    async def document(self, path: str, accept: str, *, where: str) -> Mapping[str, Any] | None:
        raise Waiting("Nothing is applied.")

    def _may_fail(self, what: str) -> None:
        if what in self.fails:
            raise self.fails[what]


@pytest.fixture
def edge() -> Edge:
    return Edge()


def watch_of(edge: Edge, clock: QuickClock) -> Watch:
    return Watch(
        edge,
        edge.certificate,
        namespace="edgewright",
        cluster="cluster",
        look_seconds=15,
        clock=clock,
        chance=Random(1),
    )


async def test_a_look_sees_everything_in_a_fixed_order(edge: Edge) -> None:
    watch = watch_of(edge, QuickClock(0))
    await watch.look()
    assert watch.seen.is_whole and watch.news.is_set()
    assert [host.hostname for host in watch.seen.hosts or ()] == ["a", "b"]
    assert (watch.seen.revision, watch.seen.certificate) == ("main@sha1:a", PEM)


async def test_the_same_again_is_no_news(edge: Edge) -> None:
    watch = watch_of(edge, QuickClock(0))
    await watch.look()
    watch.news.clear()
    edge.found.reverse()
    await watch.look()
    assert not watch.news.is_set()
    edge.found.pop()
    await watch.look()
    assert watch.news.is_set()


@pytest.mark.parametrize("what", ["nodes", "flux_sources", "flux", "flux_releases", "sealed_secrets", "version"])
async def test_what_cannot_be_seen_stays_as_it_was_seen_and_hides_nothing_else(edge: Edge, what: str) -> None:
    blind = watch_of(edge, QuickClock(0))
    edge.fails[what] = Forbidden("No.", code="kubernetes_forbidden")
    await blind.look()
    seen = blind.seen
    parts = [seen.hosts, seen.sources, seen.kustomizations, seen.releases, seen.certificate, seen.versions]
    assert parts.count(None) == 1
    assert seen.is_whole is (what == "flux_releases"), "an older version has installed no right to see them"

    edge.fails.clear()
    watch = watch_of(edge, QuickClock(0))
    await watch.look()
    assert watch.seen.openings
    whole = watch.seen
    edge.fails[what] = Waiting("Away.", code="kubernetes_away")
    await watch.look()
    assert watch.seen == whole


async def test_an_edge_that_shows_no_sealed_secrets_is_whole_without_them(edge: Edge) -> None:
    """Rights of an older version, for one: the centre is not told what nobody has seen."""
    edge.fails["opened_secrets"] = Forbidden("No.", code="kubernetes_forbidden")
    watch = watch_of(edge, QuickClock(0))
    await watch.look()
    assert watch.seen.is_whole and watch.seen.openings is None
    assert "secrets" not in watch.seen.to_json()


async def test_sealed_secrets_are_looked_at_when_flux_has_applied_something_and_until_all_are_opened(
    edge: Edge,
) -> None:
    clock = QuickClock(0)
    watch = watch_of(edge, clock)
    await watch.look()
    assert [each.name for each in watch.seen.openings or ()] == ["a", "b"]
    for _ in range(3):
        await watch.look()
    assert edge.asked_for_openings == 1, "nothing has happened"
    edge.applied, edge.stage = "b", Stage.PENDING
    for _ in range(3):
        await watch.look()
    assert edge.asked_for_openings == 4
    edge.stage = Stage.OPENED
    for _ in range(3):
        await watch.look()
    assert edge.asked_for_openings == 5
    assert [each.stage for each in watch.seen.openings or ()] == [Stage.OPENED, Stage.OPENED]


async def test_sealed_secrets_are_looked_at_once_a_minute_if_nothing_happens(edge: Edge) -> None:
    clock = QuickClock(600)
    with pytest.raises(TimeIsUp):
        await watch_of(edge, clock).run()
    assert 8 <= edge.asked_for_openings <= 11


async def test_the_end_of_a_new_refusal_is_seen_with_the_next_look(edge: Edge) -> None:
    """Flux applies nothing then: what stood in the way is gone from the edge."""
    edge.stage = Stage.REFUSED
    watch = watch_of(edge, QuickClock(0))
    for _ in range(3):
        await watch.look()
    assert edge.asked_for_openings == 3
    edge.stage = Stage.OPENED
    await watch.look()
    assert [each.stage for each in watch.seen.openings or ()] == [Stage.OPENED, Stage.OPENED]
    await watch.look()
    assert edge.asked_for_openings == 4, "none is refused any more"


async def test_a_refusal_that_stays_is_looked_at_once_a_minute_after_ten(edge: Edge) -> None:
    edge.stage = Stage.REFUSED
    clock = QuickClock(600)
    watch = watch_of(edge, clock)
    with pytest.raises(TimeIsUp):
        await watch.run()
    assert edge.asked_for_openings > 35
    edge.asked_for_openings, clock._lasts = 0, 1200
    with pytest.raises(TimeIsUp):
        await watch.run()
    assert 8 <= edge.asked_for_openings <= 12


async def test_trouble_and_its_end_have_one_line_each_and_the_version_is_asked_for_rarely(edge: Edge) -> None:
    def turn() -> None:
        edge.fails = {"nodes": Waiting("Away.", code="kubernetes_away")} if 600 < clock.monotonic() < 1200 else {}

    clock = QuickClock(3000, turn)
    with capture_logs() as logged, pytest.raises(TimeIsUp):
        await watch_of(edge, clock).run()
    assert [line["state"] for line in logged if line["event"] == "nodes"] == ["seen", "unseen", "seen"]
    assert edge.asked_for_version == 1
    assert all(13 < pause < 17 for pause in clock.sleeps)


async def test_the_certificate_is_what_the_controller_hands_out(
    centre: ScriptedCentre, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")  # within the cluster no proxy is wanted
    centre.reply = lambda _request: Reply(200, PEM.encode())
    ask = SealingCertificateSource(centre.url)
    assert await ask() == PEM
    assert centre.requests[0].path == "/v1/cert.pem"
    await ask.close()


@pytest.mark.parametrize(
    "reply",
    [Reply(404), Reply(200, b"<html>"), Reply(302, None, {"Location": "/"}), Reply(200, b" " * (LARGEST + 1))],
)
async def test_anything_else_is_no_certificate(centre: ScriptedCentre, reply: Reply) -> None:
    centre.reply = lambda _request: reply
    ask = SealingCertificateSource(centre.url)
    with pytest.raises(Waiting) as trouble:
        await asyncio.wait_for(ask(), 20)
    assert trouble.value.code == "no_sealing_certificate"
    await ask.close()


async def test_looks_come_more_often_until_what_was_asked_for_is_applied(edge: Edge) -> None:
    clock = QuickClock(300)
    watch = watch_of(edge, clock)
    watch.hurry("b")
    with pytest.raises(TimeIsUp):
        await watch.run()
    assert sum(clock.sleeps[:20]) < 60 and max(clock.sleeps[:20]) < 3, "for a minute"
    assert min(clock.sleeps[40:]) > 10
    clock.sleeps.clear()
    clock._lasts += 300
    watch.hurry("a")
    with pytest.raises(TimeIsUp):
        await watch.run()
    assert min(clock.sleeps) > 10, "that is applied already"


async def test_looks_come_more_often_until_what_was_applied_is_opened(edge: Edge) -> None:
    edge.stage = Stage.PENDING
    clock = QuickClock(30)
    watch = watch_of(edge, clock)
    watch.hurry("a")
    with pytest.raises(TimeIsUp):
        await watch.run()
    assert max(clock.sleeps) < 3


async def test_namespaces_are_reported_as_long_as_all_of_them_are(edge: Edge) -> None:
    """Told of some of them only, the centre would take the others for missing."""
    watch = watch_of(edge, QuickClock(0))
    await watch.look()
    assert watch.seen.to_json()["namespaces"] == ["default", "line-1"]
    edge.fails["namespaces"] = Forbidden("No.", code="kubernetes_forbidden")
    await watch.look()
    assert watch.seen.namespaces == ("default", "line-1")
    del edge.fails["namespaces"]
    edge.namespaces_found = [f"n{number:03}" for number in range(251)]
    await watch.look()
    assert "namespaces" not in watch.seen.to_json()
    edge.namespaces_found.pop()
    await watch.look()
    assert len(watch.seen.to_json()["namespaces"]) == 250


async def test_an_agent_that_may_not_list_namespaces_sees_everything_else(edge: Edge) -> None:
    edge.fails["namespaces"] = Forbidden("No.", code="kubernetes_forbidden")
    watch = watch_of(edge, QuickClock(0))
    await watch.look()
    assert watch.seen.is_whole
    assert "namespaces" not in watch.seen.to_json()
