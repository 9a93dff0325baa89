"""What the centre wants fetched is asked of Flux once, and again if it does not come."""

from datetime import datetime

import pytest
from scripted_centre import QuickClock
from structlog.testing import capture_logs

from edgewright.agent.fetching import FluxFetching
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

    def __init__(self) -> None:
        self.flux, self.clock = Flux(), QuickClock(1e9)
        self.expected: list[str] = []
        self.fetching = FluxFetching(self.flux, namespace="line-4", clock=self.clock, hurry=self.expected.append)

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
