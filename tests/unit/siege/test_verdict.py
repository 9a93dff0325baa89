"""What the siege does not put up with."""

from dataclasses import replace
from math import inf
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from bench.siege.__main__ import noticed_until
from bench.siege.arrivals import ARRIVES, NEEDED, OBEYED, SIGNALS
from bench.siege.attackers import ATTACKS
from bench.siege.bystanders import WATCHED, Noticed, worse
from bench.siege.loop_lag import HELD, HELD_SECONDS, Ticks, classes, longest
from bench.siege.losses import DELETION_SECONDS
from bench.siege.verdict import (
    GIT_MEGABYTES,
    HELD_SHARE,
    MEMORY_MEGABYTES,
    NOISE_SECONDS,
    SLOWER,
    STARVED,
    SiegePhase,
    troubles,
)

PERFORMANCE = Path(__file__).parents[3] / "docs/performance.md"
NOTICED = Noticed(dict.fromkeys(WATCHED, 0.01), dict.fromkeys(WATCHED, 0.02), dict.fromkeys(WATCHED, 20), {}, [])
QUIET = SiegePhase("quiet", NOTICED, {"gateway": 100.0, "git": 0.0}, {"worker": Ticks(200, 0)}, 0.025, {})
PUSH = replace(QUIET, name="push-token", met=dict.fromkeys(ARRIVES["push-token"], 1))


def test_nothing_is_wrong_with_an_attack_that_nobody_noticed() -> None:
    assert troubles(PUSH, QUIET, ratios=True) == []


@pytest.mark.parametrize(("part", "allowed"), [("git", GIT_MEGABYTES), ("gateway", 100 + MEMORY_MEGABYTES)])
def test_memory_beyond_the_bound_is_a_broken_promise(part: str, allowed: float) -> None:
    assert troubles(replace(PUSH, megabytes=PUSH.megabytes | {part: allowed}), QUIET, ratios=False) == []
    assert len(troubles(replace(PUSH, megabytes=PUSH.megabytes | {part: allowed + 1}), QUIET, ratios=False)) == 1


@pytest.mark.parametrize(("name", "what"), [(name, what) for name in ATTACKS for what in ARRIVES.get(name, [""])])
def test_an_attack_that_did_not_arrive_shows_nothing(name: str, what: str) -> None:
    arrived = {each: NEEDED.get(each, 1) for each in ARRIVES[name]}
    assert troubles(replace(QUIET, name=name, met=arrived), QUIET, ratios=False) == []
    missing = replace(QUIET, name=name, met=arrived | {what: 0})
    assert troubles(missing, QUIET, ratios=False) == [f"{name}: no {what}"]


def test_a_few_signals_are_no_flood() -> None:
    few = replace(QUIET, name="signal-flood", met={SIGNALS: NEEDED[SIGNALS] - 1})
    assert troubles(few, QUIET, ratios=False) == [f"signal-flood: only {NEEDED[SIGNALS] - 1} {SIGNALS}"]


def test_a_slow_attacker_gets_further_rounds_and_each_of_them_counts() -> None:
    slow = replace(NOTICED, p99=dict.fromkeys(WATCHED, 0.9), failed={"poll": {"500": 1}})
    starved = replace(NOTICED, answered=dict.fromkeys(WATCHED, 1), failed={"poll": {"500": 2}})
    rounds, left = [slow, starved], iter([False, False, True])
    noticed = noticed_until(lambda: next(left), first=NOTICED, another=lambda: rounds.pop(0))
    assert noticed == worse(worse(NOTICED, slow), starved)
    assert set(noticed.p99.values()) == {0.9}
    assert set(noticed.answered.values()) == {1}
    assert noticed.failed == {"poll": {"500": 3}}
    assert len(troubles(replace(PUSH, noticed=noticed), QUIET, ratios=False)) == 1 + len(WATCHED)


def test_an_attack_that_has_arrived_gets_no_other_round() -> None:
    assert noticed_until(lambda: True, first=NOTICED, another=lambda: pytest.fail("another round")) == NOTICED


def test_the_documented_bounds_are_those_that_are_judged() -> None:
    told = PERFORMANCE.read_text("utf-8").split("## Under attack")[1].split("\n## ")[0]
    assert [line.split("`")[1] for line in told.splitlines() if line.startswith("| `")] == list(ATTACKS)
    assert (SLOWER, STARVED) == (2, 4)
    for bound in (
        f"above {NOISE_SECONDS * 1000:.0f} ms",
        f"late by {HELD_SECONDS * 1000:.0f} ms",
        f"more than {HELD_SHARE:.0%} of looks",
        f"{MEMORY_MEGABYTES:.0f} MB more than in peace",
        f"within {DELETION_SECONDS:.0f} s",
    ):
        assert bound in " ".join(told.split())


def test_a_web_page_that_is_obeyed_is_a_broken_promise() -> None:
    refused = replace(QUIET, name="browser-page", met=dict.fromkeys(ARRIVES["browser-page"], 1) | {OBEYED: 0})
    assert troubles(refused, QUIET, ratios=False) == []
    assert len(troubles(replace(refused, met=dict(refused.met) | {OBEYED: 1}), QUIET, ratios=False)) == 1


def test_a_task_that_holds_the_worker_is_a_broken_promise_however_busy_the_machine_is() -> None:
    assert troubles(replace(PUSH, held=HELD_SECONDS), QUIET, ratios=False) == []
    held = replace(PUSH, held=0.1)
    assert len(troubles(held, replace(QUIET, held=0.1), ratios=False)) == 1


def exposition(*held: float) -> str:
    """What a worker says whose tasks held its loop for so many seconds."""
    histogram = Histogram(HELD, "", buckets=(0.025, 0.05, 0.1), registry=(registry := CollectorRegistry()))
    for seconds in held:
        histogram.observe(seconds)
    return generate_latest(registry).decode()


@pytest.mark.parametrize(("added", "most"), [((), 0.0), ((0.01,), 0.025), ((0.01, 0.06, 0.03), 0.1), ((2.0,), inf)])
def test_what_held_the_worker_is_told_of_one_phase_alone(added: tuple[float, ...], most: float) -> None:
    before = (0.07, 0.01)
    assert longest(classes(exposition(*before), HELD), classes(exposition(*before, *added), HELD)) == most


def test_a_worker_that_does_not_tell_is_no_worker_that_is_never_held() -> None:
    with pytest.raises(LookupError):
        longest({}, classes("", HELD))
