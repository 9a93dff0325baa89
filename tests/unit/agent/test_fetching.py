"""What the centre wants fetched is asked of Flux once, and again if it does not come."""

from datetime import datetime
from itertools import pairwise
from random import Random

import pytest
from scripted_centre import QuickClock
from structlog.testing import capture_logs

from edgewright.agent.fetching import PROBE_JITTER, PROBE_SECONDS, FluxFetching
from edgewright.agent.observation import Fetched, Observation
from edgewright.errors import EdgewrightError, Forbidden, Waiting

OLD, NEW = "a" * 40, "b" * 40
SEEN = Observation(
    sources=(Fetched("self-link", fetched=f"main@sha1:{OLD}"), Fetched("helm-charts", fetched=f"main@sha1:{OLD}"))
)


class Flux:
    """Takes note of what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.fails: EdgewrightError | None = None
        self.is_bounded = True

    async def bounds_fetching(self) -> bool:
        return self.is_bounded

    async def ask_to_fetch(self, namespace: str, source: str, at: datetime) -> None:
        self.asked.append((namespace, source))
        if self.fails is not None:
            raise self.fails


class Edge:
    """An agent's part of it."""

    def __init__(self, seed: int = 1) -> None:
        self.flux, self.clock = Flux(), QuickClock(1e9)
        self.expected: list[str] = []
        self.fetching = FluxFetching(
            self.flux, namespace="line-4", clock=self.clock, chance=Random(seed), hurry=self.expected.append
        )

    async def hears(self, seen: Observation = SEEN, **revisions: str) -> list[tuple[str, str]]:
        """What Flux is asked then."""
        self.flux.asked.clear()
        await self.fetching.heard({name.replace("_", "-"): commit for name, commit in revisions.items()}, seen)
        return list(self.flux.asked)


@pytest.fixture
def edge() -> Edge:
    return Edge()


async def test_a_new_commit_is_asked_for_once(edge: Edge) -> None:
    assert await edge.hears(self_link=NEW, helm_charts=OLD) == [("line-4", "self-link")]
    assert edge.expected == [NEW]
    assert await edge.hears(self_link=NEW, helm_charts=OLD) == []
    assert await edge.hears(self_link="c" * 40, helm_charts=NEW) == [
        ("line-4", "self-link"),
        ("line-4", "helm-charts"),
    ]


async def test_what_is_there_is_not_asked_for(edge: Edge) -> None:
    assert await edge.hears(self_link=OLD, helm_charts=OLD) == []


async def test_what_does_not_come_is_asked_for_again(edge: Edge) -> None:
    await edge.hears(self_link=NEW)
    await edge.clock.sleep(29)
    assert await edge.hears(self_link=NEW) == []
    await edge.clock.sleep(1)
    assert await edge.hears(self_link=NEW) == [("line-4", "self-link")]


async def test_only_our_two_sources_are_ever_asked_for(edge: Edge) -> None:
    """The centre says the names; the policy on the edge would refuse any other."""
    sources = (*(SEEN.sources or ()), Fetched("flux-system", fetched=f"main@sha1:{OLD}"))
    assert await edge.hears(Observation(sources=sources), flux_system=NEW) == []


async def test_a_source_that_is_not_there_or_was_not_seen_is_not_asked_for(edge: Edge) -> None:
    assert await edge.hears(Observation(), self_link=NEW) == []
    assert await edge.hears(Observation(sources=()), self_link=NEW) == []


async def test_without_the_right_it_is_tried_soon_and_then_rarely(edge: Edge) -> None:
    """The bootstrap script grants it some seconds after the agent has started."""
    edge.flux.fails = Forbidden("No.", code="kubernetes_forbidden")
    for seconds in (10, 20, 40, 80, 160, 320, 600, 600):
        assert await edge.hears(self_link=NEW) == [("line-4", "self-link")]
        assert edge.expected == []
        await edge.clock.sleep(seconds - 1)
        assert await edge.hears(self_link="c" * 40) == []
        await edge.clock.sleep(1)
    edge.flux.fails = None
    assert await edge.hears(self_link=NEW) == [("line-4", "self-link")]
    assert edge.expected == [NEW]


async def test_an_api_server_that_is_away_is_asked_with_the_next_answer(edge: Edge) -> None:
    edge.flux.fails = Waiting("Away.", code="kubernetes_away")
    await edge.hears(self_link=NEW)
    edge.flux.fails = None
    assert await edge.hears(self_link=NEW) == [("line-4", "self-link")]


async def test_without_the_policy_the_right_is_not_used(edge: Edge) -> None:
    edge.flux.is_bounded = False
    with capture_logs() as logged:
        assert await edge.hears(self_link=NEW) == []
        assert await edge.hears(self_link=NEW) == []
    assert [line["state"] for line in logged] == ["unbounded"]
    edge.flux.is_bounded = True
    assert await edge.hears(self_link=NEW) == [("line-4", "self-link")]


async def test_the_centre_is_told_whether_flux_is_asked_once_that_is_sure(edge: Edge) -> None:
    """Each change of it is a commit for this edge, and the right comes some seconds after the agent has started."""
    assert edge.fetching.works is None
    edge.flux.fails = Forbidden("No.", code="kubernetes_forbidden")
    await edge.hears(self_link=NEW)
    assert edge.fetching.works is None
    edge.flux.fails = None
    await edge.clock.sleep(10)
    await edge.hears(self_link=NEW)
    assert edge.fetching.works is True
    edge.flux.is_bounded = False
    await edge.hears(self_link="c" * 40)
    assert edge.fetching.works is None, "the policy may only just be written anew"
    await edge.clock.sleep(600)
    await edge.hears(self_link="c" * 40)
    assert edge.fetching.works is False
    edge.flux.is_bounded = True
    await edge.hears(self_link="c" * 40)
    assert edge.fetching.works is True


SELF_LINK = ("line-4", "self-link")
AT_MOST = PROBE_SECONDS * (1 + PROBE_JITTER)


async def probes(edge: Edge, seconds: float, seen: Observation = SEEN) -> list[float]:
    """When Flux is asked while nothing is wanted, with an answer of the centre each minute."""
    asked = []
    for minute in range(int(seconds / 60)):
        for each in await edge.hears(seen, self_link=OLD):
            assert each == SELF_LINK
            asked.append(minute * 60.0)
        await edge.clock.sleep(60)
    return asked


async def test_flux_is_asked_once_an_hour_though_nothing_is_wanted(edge: Edge) -> None:
    """Whether it answers is seen by nothing else."""
    asked = await probes(edge, 24 * PROBE_SECONDS)
    assert 21 <= len(asked) <= 27 and asked[0] <= PROBE_SECONDS
    assert all(0.8 * PROBE_SECONDS < later - at <= AT_MOST + 60 for at, later in pairwise(asked))
    assert edge.expected == [], "nothing is to come"


async def test_a_fleet_that_starts_at_once_does_not_ask_at_once() -> None:
    first = [(await probes(Edge(seed), PROBE_SECONDS + 60))[0] for seed in range(20)]
    assert len({int(at / 600) for at in first}) > 3


async def test_what_is_asked_for_puts_that_off(edge: Edge) -> None:
    await edge.clock.sleep(PROBE_SECONDS)
    assert await edge.hears(self_link=NEW) == [SELF_LINK]
    assert await probes(edge, 0.9 * PROBE_SECONDS) == []
    assert len(await probes(edge, 0.3 * PROBE_SECONDS)) == 1


@pytest.mark.parametrize(
    "source",
    [
        Fetched("self-link", fetched=OLD, suspended=True),
        Fetched("self-link", fetched=OLD, asked="11:00", handled="10:00"),
        Fetched("helm-charts", fetched=OLD),
    ],
    ids=["suspended", "asked already", "not there"],
)
async def test_nobody_is_asked_where_that_tells_nothing(edge: Edge, source: Fetched) -> None:
    assert await probes(edge, 3 * PROBE_SECONDS, Observation(sources=(source,))) == []


async def test_without_the_right_that_is_not_tried_more_often(edge: Edge) -> None:
    edge.flux.fails = Forbidden("No.", code="kubernetes_forbidden")
    assert len(await probes(edge, 6 * PROBE_SECONDS)) <= 7
