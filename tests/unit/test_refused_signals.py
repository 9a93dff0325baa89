"""What is told of a signal that cannot be carried out, and how often."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from temporalio import workflow
from temporalio.api.common.v1 import Payload
from temporalio.common import RawValue

from edgewright.cli.main import command_tree
from edgewright.domain.events import EventKind
from edgewright.messages import names
from workflows.publication import Publication
from workflows.signals import (
    COMMANDS,
    HOUR,
    MOST_TOLD,
    NOTHING,
    SIGNALS,
    UNREADABLE,
    RefusedSignals,
    input_problem,
    is_nudge,
    unknown_signal,
)

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Clock:
    """The time that a workflow sees."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(workflow, "now", clock)
    return clock


def told_of(refused: RefusedSignals, *, at_the_end: bool = False) -> list[tuple[str, object]]:
    """Kind of each event that is told now, and how many signals it is about."""
    publication = Publication(uuid4(), None, ())
    refused.tell(publication, all_of_them=at_the_end)
    return [(event.kind, event.detail.get("signals", 1)) for event in publication.events]


# --- names ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("delet", "delete"),
        ("Delete", "delete"),
        ("DELETE", "delete"),
        ("delete ", "delete"),
        ("edge-status", "edge_status"),
        ("Edge Status", "edge_status"),
        ("edgeStatus", "edge_status"),
        ("sealing_key_rotate", "sealing_key_rotated"),
        ("reconsile", "reconcile"),
        ("puase", "edgewright cluster pause NAME"),
        ("undelet", "edgewright cluster undelete NAME"),
    ],
)
def test_a_misspelt_name_finds_the_one_that_was_meant(name: str, meant: str) -> None:
    assert f" Did you mean `{meant}`? Nothing was changed." in unknown_signal(name)


@pytest.mark.parametrize("name", ["frobnicate", "", "删除", "x" * 10_000, "\x00\x1b[31m"])
def test_a_name_that_is_like_no_other_gets_all_names(name: str) -> None:
    assert all(f"`{signal}`" in unknown_signal(name) for signal in SIGNALS)


@pytest.mark.parametrize(
    ("word", "command"), [("pause", "pause"), ("undelete", "undelete"), ("retry_step", "retry"), ("status", "show")]
)
def test_what_is_no_signal_but_a_command_gets_the_command(word: str, command: str) -> None:
    sentence = f"There is no signal `{word}`: use `edgewright cluster {command} NAME`. Nothing was changed."
    assert unknown_signal(word) == sentence


def test_the_names_that_are_offered_exist() -> None:
    tree: Any = command_tree()
    assert set(COMMANDS.values()) - set(tree.commands["cluster"].commands) == set()
    assert set(SIGNALS) == {value for name, value in vars(names).items() if name.startswith("SIGNAL_")}


@pytest.mark.parametrize("name", ["a\nb", "\x1b[2Jdelete", "`rm -rf /`", "\u202eeteled", "x" * 10_000, "$(rm -rf /)"])
def test_a_name_is_repeated_on_one_short_line_without_anything_invisible(name: str) -> None:
    sentence = unknown_signal(name)
    assert sentence.isprintable()
    assert len(sentence) < 250
    assert sentence.count("`") % 2 == 0
    assert "`rm -rf /`" not in sentence


# --- inputs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("signal", "body"),
    [
        (names.SIGNAL_DELETE, None),
        (names.SIGNAL_DELETE, {}),
        (names.SIGNAL_DELETE, {"force": False, "purge": True}),
        (names.SIGNAL_EDGE_STATUS, None),
        (names.SIGNAL_EDGE_STATUS, {"hosts": "the schema judges that"}),
        (names.SIGNAL_SEALING_KEY_ROTATED, None),
        (names.SIGNAL_SEALING_KEY_ROTATED, "PEM"),
        (names.SIGNAL_SEALING_KEY_ROTATED, {"kubeseal_cert": "PEM"}),
    ],
)
def test_an_input_that_means_something_has_no_problem(signal: str, body: Any) -> None:
    assert input_problem(signal, body) == ""


@pytest.mark.parametrize(
    ("signal", "body", "sentence"),
    [
        (names.SIGNAL_DELETE, [], "The input of `delete` is a list."),
        (names.SIGNAL_DELETE, True, "The input of `delete` is true."),
        (names.SIGNAL_DELETE, "", "The input of `delete` is a text."),
        (names.SIGNAL_DELETE, 0, "The input of `delete` is a number."),
        (names.SIGNAL_DELETE, UNREADABLE, "The input of `delete` is not JSON."),
        (names.SIGNAL_DELETE, {"force": "yes"}, "`force` is a text, not true or false."),
        (names.SIGNAL_DELETE, {"force": None}, "`force` is null, not true or false."),
        (names.SIGNAL_DELETE, {"purge": 1}, "`purge` is a number, not true or false."),
        (names.SIGNAL_DELETE, {"Force": True}, "`delete` has no option `Force`. Did you mean `force`?"),
        (names.SIGNAL_DELETE, {"dry\nrun": True}, "`delete` has no option `dry?run`."),
        (names.SIGNAL_EDGE_STATUS, [{}], "The input of `edge_status` is a list."),
        (names.SIGNAL_EDGE_STATUS, UNREADABLE, "The input of `edge_status` is not JSON."),
        (names.SIGNAL_SEALING_KEY_ROTATED, {}, "The input of `sealing_key_rotated` has no `kubeseal_cert`."),
        (names.SIGNAL_SEALING_KEY_ROTATED, {"kubeseal_cert": None}, "`kubeseal_cert` is null, not a text."),
        (names.SIGNAL_SEALING_KEY_ROTATED, 7.5, "The input of `sealing_key_rotated` is a number."),
    ],
)
def test_an_input_that_means_nothing_is_told_with_what_to_send(signal: str, body: Any, sentence: str) -> None:
    problem = input_problem(signal, body)
    assert problem.startswith(f"{sentence} Send ")
    assert problem.endswith((" Nothing was deleted.", " Nothing was changed."))


@pytest.mark.parametrize(
    ("encoding", "data", "always"),
    [
        (b"json/plain", b'{"bulk":true}', True),
        (b"json/plain", b'{"from_the_future":1}', True),
        (b"json/plain", b"null", True),
        (b"binary/null", b"", True),
        (b"json/plain", b'"text"', False),
        (b"json/plain", b'{"bulk":"perhaps"}', False),
        (b"json/plain", b"{", False),
        (b"json/protobuf", b"{}", False),
    ],
)
def test_a_nudge_that_earlier_versions_passed_over_is_known(encoding: bytes, data: bytes, always: bool) -> None:
    assert is_nudge(RawValue(Payload(metadata={"encoding": encoding}, data=data))) is always
    assert is_nudge(NOTHING)


# --- how often -----------------------------------------------------------------------------------------------------


def test_a_few_of_an_hour_are_told_by_name_and_the_others_together_when_it_is_over(clock: Clock) -> None:
    refused = RefusedSignals()
    for number in range(MOST_TOLD + 30):
        refused.take_unknown(f"nothing-{number}")
    assert told_of(refused) == [(EventKind.SIGNAL_UNKNOWN, 1)] * MOST_TOLD
    refused.take_unknown("one more")
    assert (refused.waiting, told_of(refused)) == (False, [])
    clock.now += HOUR
    assert told_of(refused) == [(EventKind.SIGNALS_DROPPED, 31)]
    refused.take_unknown("a new hour")
    assert told_of(refused) == [(EventKind.SIGNAL_UNKNOWN, 1)]


def test_a_signal_of_the_next_hour_has_those_of_the_last_one_told(clock: Clock) -> None:
    refused = RefusedSignals()
    for number in range(MOST_TOLD + 2):
        refused.take_unknown(f"nothing-{number}")
    told_of(refused)
    clock.now += 3 * HOUR
    refused.take_unknown("later")
    assert Counter(told_of(refused)) == {(EventKind.SIGNAL_UNKNOWN, 1): 1, (EventKind.SIGNALS_DROPPED, 2): 1}
    assert told_of(refused, at_the_end=True) == []


def test_the_end_of_a_run_tells_all(clock: Clock) -> None:
    refused = RefusedSignals()
    for number in range(MOST_TOLD + 2):
        refused.take_unknown(f"nothing-{number}")
    clock.now += timedelta(minutes=1)
    assert told_of(refused, at_the_end=True)[-1] == (EventKind.SIGNALS_DROPPED, 2)


@pytest.mark.usefixtures("clock")
def test_a_flood_of_one_kind_hides_none_of_another() -> None:
    refused = RefusedSignals()
    for _ in range(5_000):
        refused.take_unfit(names.SIGNAL_EDGE_STATUS, "It is a list.")
    refused.take_unfit(names.SIGNAL_DELETE, "It is a list.")
    refused.take_unknown("delet")
    assert Counter(kind for kind, _ in told_of(refused)) == {
        EventKind.EDGE_STATUS_REFUSED: MOST_TOLD,
        EventKind.DELETE_REFUSED: 1,
        EventKind.SIGNAL_UNKNOWN: 1,
    }
