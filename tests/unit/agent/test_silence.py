"""A controller of Flux that leaves undone what is due is told, once that is sure, and until it answers."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from scripted_centre import START, QuickClock

from edgewright.agent.flux_conditions import FluxCondition
from edgewright.agent.objects import GitRepository, fetched_of
from edgewright.agent.observation import Fetched, Kustomized, Observation
from edgewright.agent.silence import BUSY_SECONDS, SHORTEST_SILENCE, SILENT_LOOKS, FluxSilence

LOOK = 15
PATIENCE = SILENT_LOOKS * LOOK
OLD, NEW = "main@sha1:a", "main@sha1:b"
READY, AT_WORK = FluxCondition("Ready", "True"), FluxCondition("Ready", "Unknown")
FAILING = FluxCondition("Ready", "False", "DependencyNotReady")
SOURCE = Fetched("self-link", fetched=OLD, conditions=(READY,), asked="10:00", handled="10:00")
PART = Kustomized("edge-secrets-default", "self-link", applied=OLD, attempted=OLD, conditions=(READY,))
ASKED = replace(SOURCE, asked="11:00")
FETCHED = replace(ASKED, fetched=NEW, handled="11:00")


class Edge:
    """What is seen of Flux there, look by look."""

    def __init__(self) -> None:
        self.clock = QuickClock(1e9)
        self.silence = FluxSilence(look_seconds=LOOK, clock=self.clock)
        self.source: Fetched | None = SOURCE
        self.part: Kustomized | None = PART
        self.is_young = False

    async def looks(self, seconds: float) -> tuple[str, ...]:
        """Who is silent after so long. A look is at its beginning, too."""
        self.look()
        for _ in range(int(seconds / LOOK)):
            await self.clock.sleep(LOOK)
            self.look()
        return self.silence.silent

    def look(self) -> None:
        sources = None if self.source is None else [self.source]
        parts: Sequence[Kustomized] | None = None if self.part is None else [self.part]
        self.silence.look(sources, parts, is_young=self.is_young)


@pytest.fixture
def edge() -> Edge:
    return Edge()


async def test_flux_that_does_what_is_due_is_not_silent(edge: Edge) -> None:
    assert await edge.looks(PATIENCE) == ()
    edge.source, edge.part = FETCHED, replace(PART, applied=NEW, attempted=NEW)
    assert await edge.looks(10 * PATIENCE) == ()


async def test_a_request_to_fetch_that_nobody_deals_with_is_told_until_somebody_does(edge: Edge) -> None:
    edge.look()
    edge.source = ASKED
    assert await edge.looks(PATIENCE - LOOK) == ()
    assert await edge.looks(LOOK) == ("source-controller",)
    assert await edge.looks(10 * PATIENCE) == ("source-controller",)
    edge.source = replace(ASKED, handled="11:00")
    assert await edge.looks(0) == ()


async def test_asking_again_and_again_puts_it_off_not_at_all(edge: Edge) -> None:
    for number in range(SILENT_LOOKS + 1):
        edge.source = replace(ASKED, asked=f"11:{number}")
        edge.look()
        await edge.clock.sleep(LOOK)
    assert edge.silence.silent == ("source-controller",)


async def test_what_was_fetched_and_is_not_begun_with_is_told_until_it_is(edge: Edge) -> None:
    edge.look()
    edge.source = FETCHED
    assert await edge.looks(PATIENCE - LOOK) == ()
    assert await edge.looks(LOOK) == ("kustomize-controller",)
    edge.part = replace(PART, attempted=NEW, conditions=(AT_WORK,))
    assert await edge.looks(0) == ()


@pytest.mark.parametrize(
    "source",
    [
        replace(ASKED, suspended=True),
        replace(ASKED, own=False),
        replace(SOURCE, asked=None),
        replace(ASKED, conditions=(AT_WORK,)),
    ],
    ids=["suspended", "not ours", "never asked", "being fetched"],
)
async def test_a_source_that_may_rest_or_is_at_work_is_none_of_it(edge: Edge, source: Fetched) -> None:
    edge.source = source
    assert await edge.looks(PATIENCE + LOOK) == ()


async def test_one_that_is_fetched_for_ever_is_silent_in_the_end(edge: Edge) -> None:
    edge.source = replace(ASKED, conditions=(AT_WORK,))
    assert await edge.looks(BUSY_SECONDS) == ("source-controller",)


@pytest.mark.parametrize(
    "change",
    [
        {"suspended": True},
        {"deleting": True},
        {"own": False},
        {"source": "helm-charts"},
        {"applied": NEW, "attempted": None},
        {"conditions": (FAILING,)},
        {"conditions": (AT_WORK,)},
    ],
    ids=str,
)
async def test_a_kustomization_that_may_rest_waits_or_fails_is_none_of_it(edge: Edge, change: dict[str, Any]) -> None:
    edge.source, edge.part = FETCHED, replace(PART, **change)
    assert await edge.looks(10 * PATIENCE) == ()


async def test_a_controller_that_writes_anything_is_there(edge: Edge) -> None:
    """It is busy, or one object is stuck: that is another matter."""
    edge.source = ASKED
    await edge.looks(PATIENCE - LOOK)
    edge.source = replace(ASKED, conditions=(FluxCondition("Ready", "True", since=START),))
    assert await edge.looks(PATIENCE - LOOK) == ()


async def test_an_agent_that_has_just_started_waits_as_long(edge: Edge) -> None:
    edge.source = ASKED
    assert await edge.looks(PATIENCE - LOOK) == ()
    assert await edge.looks(LOOK) == ("source-controller",)


async def test_on_a_young_edge_what_flux_has_never_worked_on_is_not_due(edge: Edge) -> None:
    edge.is_young = True
    edge.source = replace(ASKED, fetched=None)
    assert await edge.looks(10 * PATIENCE) == ()
    edge.source, edge.part = FETCHED, replace(PART, applied=None, attempted=None)
    assert await edge.looks(10 * PATIENCE) == ()
    edge.is_young = False
    assert await edge.looks(PATIENCE) == ("kustomize-controller",)
    edge.source = replace(ASKED, fetched=None)
    assert await edge.looks(PATIENCE) == ("source-controller",)


@pytest.mark.parametrize(
    ("due", "silent"),
    [(lambda edge: ASKED, "source-controller"), (lambda edge: FETCHED, "kustomize-controller")],
    ids=["source", "kustomize"],
)
async def test_while_the_api_server_is_away_nobody_is_silent_who_was_not(
    edge: Edge, due: Callable[[Edge], Fetched], silent: str
) -> None:
    edge.look()
    edge.source = due(edge)
    await edge.looks(PATIENCE - LOOK)
    edge.source = edge.part = None
    assert await edge.looks(10 * PATIENCE) == ()
    edge.source, edge.part = due(edge), PART
    assert await edge.looks(PATIENCE - LOOK) == ()
    assert await edge.looks(LOOK) == (silent,)
    edge.source = edge.part = None
    assert await edge.looks(10 * PATIENCE) == (silent,), "nothing says that it is back"


async def test_a_controller_that_waits_for_the_health_of_another_has_no_hand_free(edge: Edge) -> None:
    edge.source = FETCHED
    busy = replace(PART, name="by-hand", attempted=NEW, conditions=(AT_WORK,), own=False)
    for _ in range(3 * SILENT_LOOKS):
        edge.silence.look([FETCHED], [PART, busy], is_young=False)
        assert edge.silence.silent == ()
        await edge.clock.sleep(LOOK)


async def test_quick_looks_do_not_make_it_hasty() -> None:
    clock = QuickClock(1e9)
    silence = FluxSilence(look_seconds=1, clock=clock)
    for _ in range(int(SHORTEST_SILENCE)):
        silence.look([ASKED], [PART], is_young=False)
        assert silence.silent == ()
        await clock.sleep(1)
    silence.look([ASKED], [PART], is_young=False)
    assert silence.silent == ("source-controller",)


async def test_after_a_pause_of_the_whole_machine_flux_has_time_again(edge: Edge) -> None:
    edge.source = ASKED
    await edge.looks(2 * LOOK)
    await edge.clock.sleep(3600)
    assert await edge.looks(2 * LOOK) == ()


def test_two_minutes_pass_before_it_is_told() -> None:
    assert timedelta(seconds=PATIENCE) == timedelta(minutes=2)


def test_it_is_reported_only_while_somebody_is_silent() -> None:
    assert Observation(silent=("source-controller",)).to_json() == {"silent": ["source-controller"]}
    assert Observation().to_json() == {}


def test_request_and_answer_are_read_from_the_source() -> None:
    metadata = {"name": "self-link", "annotations": {"reconcile.fluxcd.io/requestedAt": "11:00"}}
    status = {"lastHandledReconcileAt": "10:00"}
    fetched = fetched_of(GitRepository.from_dict({"metadata": metadata, "status": status}), "cluster")
    assert (fetched.asked, fetched.handled, fetched.is_unanswered) == ("11:00", "10:00", True)
    assert not fetched_of(GitRepository.from_dict({"metadata": {"name": "self-link"}}), "cluster").is_unanswered
