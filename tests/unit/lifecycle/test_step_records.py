"""What may become of the record of a step, and what may not."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from edgewright.domain.cluster import StepName, StepState
from edgewright.domain.projection import StepRecord

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
LATER = NOON + timedelta(seconds=5)
NEW = StepRecord(name=StepName.CREATE_REPOSITORY)
RUNNING = NEW.begin(NOON)
WAITING = RUNNING.fail(error="The disk is full.", code="disk_full", hint="Tidy up.", next_at=LATER)
BLOCKED = RUNNING.fail(error="The name is taken.", code="name_taken", hint="", next_at=None)
DONE = RUNNING.complete(LATER)
SKIPPED = WAITING.skip(LATER, because="scrapped")
RECORDS = {record.state: record for record in (NEW, RUNNING, WAITING, BLOCKED, DONE, SKIPPED)}

Change = Callable[[StepRecord], StepRecord]
CHANGES: dict[str, tuple[Change, set[StepState]]] = {
    "begin": (
        lambda record: record.begin(LATER),
        {StepState.PENDING, StepState.RUNNING, StepState.WAITING, StepState.BLOCKED},
    ),
    "wait for the edge": (lambda record: record.await_edge(LATER), {StepState.PENDING}),
    "be done": (lambda record: record.complete(LATER), set(StepState) - {StepState.SKIPPED}),
    "be answered": (lambda record: record.answered(LATER), set(StepState) - {StepState.DONE, StepState.SKIPPED}),
    "fail": (lambda record: record.fail(error="", code="", hint="", next_at=None), {StepState.RUNNING}),
    "be taken back": (lambda record: record.take_back(attempts=0), {StepState.RUNNING}),
    "be tried again": (lambda record: record.retry(), {StepState.WAITING, StepState.BLOCKED}),
    "be skipped": (
        lambda record: record.skip(LATER, because="scrapped"),
        set(StepState) - {StepState.DONE, StepState.SKIPPED},
    ),
}


def test_each_state_is_reached_by_what_happens_to_a_step() -> None:
    assert set(RECORDS) == set(StepState)


@pytest.mark.parametrize("state", StepState)
@pytest.mark.parametrize("what", CHANGES)
def test_what_is_impossible_is_refused(what: str, state: StepState) -> None:
    change, possible = CHANGES[what]
    record = RECORDS[state]
    if state in possible:
        assert change(record).name is record.name
    else:
        with pytest.raises(ValueError, match=f"step create_repository is {state} and cannot {what}"):
            change(record)


def test_attempts_are_counted_and_the_first_of_them_says_since_when() -> None:
    again = WAITING.begin(LATER)
    assert (again.state, again.attempts, again.started_at, again.next_at) == (StepState.RUNNING, 2, NOON, None)
    assert again.error == WAITING.error, "why the one before failed, until this one has ended"


def test_a_step_that_is_done_says_nothing_of_errors_before() -> None:
    done = WAITING.begin(LATER).complete(LATER)
    assert (done.error, done.error_code, done.hint) == ("", "", "")
    assert (done.attempts, done.started_at, done.finished_at) == (2, NOON, LATER)


def test_a_step_that_was_done_with_others_has_one_attempt() -> None:
    done = NEW.complete(LATER)
    assert (done.attempts, done.started_at, done.finished_at) == (1, LATER, LATER)


def test_a_failed_attempt_has_a_next_one_unless_a_person_has_to_act() -> None:
    assert (WAITING.state, WAITING.next_at, WAITING.error_code) == (StepState.WAITING, LATER, "disk_full")
    assert (BLOCKED.state, BLOCKED.next_at, BLOCKED.error_code) == (StepState.BLOCKED, None, "name_taken")


def test_a_step_that_is_tried_again_is_due_at_once() -> None:
    assert (WAITING.retry().state, WAITING.retry().next_at) == (StepState.PENDING, None)


def test_an_attempt_that_does_not_count_is_none() -> None:
    assert (RUNNING.take_back(attempts=0).state, RUNNING.take_back(attempts=0).attempts) == (StepState.PENDING, 0)


def test_an_answer_of_the_edge_leaves_the_attempts_as_they_are() -> None:
    assert NEW.answered(LATER) == StepRecord(name=NEW.name, state=StepState.DONE, finished_at=LATER)


def test_a_skipped_step_says_why_and_keeps_its_error() -> None:
    assert (SKIPPED.skipped_because, SKIPPED.error, SKIPPED.next_at) == ("scrapped", "The disk is full.", None)


def test_a_state_of_a_newer_program_is_not_in_the_way() -> None:
    unknown = StepRecord.model_validate({"name": "create_repository", "state": "postponed"})
    assert unknown.begin(NOON).state is StepState.RUNNING
