"""Years of one cluster, shortened to seconds; `make long-life` lives them in full, with the same code."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest

from tools.long_life.checks import LARGEST_HANDOVER, MEMORY_GROWTH, broken
from tools.long_life.growth import GROWING
from tools.long_life.plan import SHORT_FORM
from tools.long_life.run import Lived, kinds, live

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Lived:
    return asyncio.run(live(tmp_path_factory.mktemp("long-life"), SHORT_FORM))


def test_after_years_the_timeline_is_complete_and_everything_is_bounded(lived: Lived) -> None:
    assert broken(lived) == []


def test_such_a_life_has_seen_all_that_happens_to_a_cluster(lived: Lived) -> None:
    assert lived.years[-1].runs >= 10
    assert not {
        "cluster.changed",
        "cluster.paused",
        "cluster.removed",
        "cluster.recreated",
        "certificate.changed",
        "credential.rotated",
        "edge.registered",
        "lease.expired",
        "lease.renewed",
        "secret.put",
    } - set(kinds(lived))
    assert kinds(lived)["edge.registered"] == 2  # the second one on new hardware


def test_an_event_that_is_lost_is_named(lived: Lived) -> None:
    for kind, number in Counter(kinds(lived)).items():
        assert number
        first = next(event for event in lived.timeline if event.kind == kind)
        without = tuple(event for event in lived.timeline if event is not first)
        assert any("lost" in sentence for sentence in broken(replace(lived, timeline=without))), kind


def test_an_event_that_is_told_twice_is_named(lived: Lived) -> None:
    twice = replace(lived, timeline=(*lived.timeline, lived.timeline[-1]))
    assert [sentence for sentence in broken(twice) if "too often" in sentence]
    assert [sentence for sentence in broken(twice) if "stands there 2 times" in sentence]


def test_a_commit_that_nobody_told_of_is_named(lived: Lived) -> None:
    assert broken(replace(lived, commits=lived.commits | {"0" * 40})) == [f"commits: {'0' * 40} is not told of"]
    lost = min(lived.commits)
    assert broken(replace(lived, commits=lived.commits - {lost})) == [f"commits: {lost} is told of and lost"]


def test_a_history_that_is_not_bounded_is_named(lived: Lived) -> None:
    *others, last = lived.runs
    long = replace(last, events=lived.plan.longest_run + 1)
    assert [str(long.events) in sentence for sentence in broken(replace(lived, runs=(*others, long)))] == [True]
    heavy = replace(last, handover=LARGEST_HANDOVER + 1)
    assert len(broken(replace(lived, runs=(*others, heavy)))) == 2  # too much, and more than it was


def test_a_table_that_must_not_grow_is_named(lived: Lived) -> None:
    last = lived.years[-1]
    for table in last.rows.keys() - GROWING:
        grown = replace(last, rows={**last.rows, table: last.rows[table] + 1})
        assert [table in sentence for sentence in broken(replace(lived, years=(*lived.years[:-1], grown)))] == [True]


def test_a_repository_that_nobody_keeps_in_shape_is_named(lived: Lived) -> None:
    last = lived.years[-1]
    for wild in (
        replace(last.repository, packs=0),
        replace(last.repository, packs=100),
        replace(last.repository, loose=100_000),
    ):
        unkept = (*lived.years[:-1], replace(last, repository=wild))
        assert [sentence.startswith("repository") for sentence in broken(replace(lived, years=unkept))] == [True]


def test_a_worker_that_grows_is_named(lived: Lived) -> None:
    first, last = lived.years
    plan = replace(lived.plan, upgrades=frozenset())
    grown = replace(last, worker=first.worker + MEMORY_GROWTH + 1)
    assert [s.startswith("memory") for s in broken(replace(lived, plan=plan, years=(first, grown)))] == [True]
