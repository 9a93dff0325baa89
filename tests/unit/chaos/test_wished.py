"""What chaos holds against a centre, and what it does not: a missing answer leaves more than one possibility."""

from typing import Any

import pytest

from tools.chaos.evidence import cases_of
from tools.chaos.journal import JournalLine, Outcome
from tools.chaos.stores import TABLES, Stores
from tools.chaos.wished import Wished, follow

THERE = Wished(desired="present", namespace="edge", stamp="first")


def attempt(verb: str, outcome: Outcome, *, wish: str = "w", code: str = "", **asked: Any) -> JournalLine:
    return JournalLine(wish, verb, "", asked, began=1.0, ended=2.0, outcome=outcome, code=code)


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_who_does_not_know_whether_it_is_paused_may_be_overtaken(verb: str) -> None:
    unsure = follow(frozenset({THERE}), attempt("pause", "maybe"))
    assert {state.paused for state in unsure} == {False, True}
    assert follow(unsure, attempt(verb, "no", code="overtaken")) == unsure


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_who_knows_whether_it_is_paused_is_not_overtaken(verb: str) -> None:
    for paused in (False, True):
        sure = follow(frozenset({THERE}), attempt("pause" if paused else "resume", "yes"))
        assert len(sure) == 1
        assert follow(sure, attempt(verb, "no", code="overtaken")) == frozenset()


def test_of_two_unanswered_creations_of_one_name_each_may_have_made_the_cluster() -> None:
    def creation(stamp: str) -> JournalLine:
        fields = {"namespace": "edge", "chart": None, "stamp": stamp, "label": None}
        return attempt("create", "maybe", wish=stamp, name="shared-2", door="rest", fields=fields)

    row = {"uuid": "u", "name": "shared-2", "desired": "present", "generation": 1, "commissioning": 1}
    stores = Stores({**{table: [] for table in TABLES}, "clusters": [row]}, [])
    [case] = cases_of(stores, [creation("first"), creation("second")], [])
    assert {state.stamp for state in case.fitting} == {"first", "second"}
