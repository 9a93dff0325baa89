"""How far back a request is searched for that somebody may have committed."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain, repeat
from uuid import UUID

import pytest

from edgewright.application.committed_requests import (
    LOOK_BACK,
    REQUEST_TRAILER,
    already_committed,
    last_of_the_centre,
    request_trailer,
)
from edgewright.domain.kubernetes_names import SecretKey
from edgewright.ports.git_server import CommitSummary
from edgewright.ports.secret_staging import StagedChange

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def commit(message: str, at: datetime = NOON) -> CommitSummary:
    return CommitSummary("c" * 40, message, "somebody", int(at.timestamp()))


CHANGE = StagedChange(
    request=UUID("5b0c9a2e-5a53-4a8e-8a4f-6a2d3a2c5d11"),
    cluster=UUID(int=1),
    generation=1,
    place=SecretKey("default", "db", "k"),
    ciphertext="AgB=",
    fingerprint="f1",
    sealed_at=NOON,
    actor="token:test",
    sequence=7,
)


def naming(row: int, made_at: datetime) -> CommitSummary:
    trailer = request_trailer(CHANGE.request, [replace(CHANGE, sequence=row)])
    return commit(f"Seal\n\n{': '.join(trailer)}\n", made_at)


OURS = commit("Seal\n\nEdgewright-Fence: 1/3\n")
PUSHED = commit("Mine", NOON - 99 * HOUR)
OLD = commit(OURS.message, NOON - HOUR)


@pytest.mark.parametrize(
    ("log", "looked_at"),
    [
        ([OURS, PUSHED, OLD, OURS], 3),
        ([*repeat(PUSHED, 3 * LOOK_BACK), OLD, OURS], 3 * LOOK_BACK + 1),
        (list(chain(*repeat([OURS, PUSHED], LOOK_BACK))), 2 * LOOK_BACK - 1),
    ],
)
def test_only_commits_of_the_centre_end_the_search(log: list[CommitSummary], looked_at: int) -> None:
    is_last = last_of_the_centre(NOON)
    assert next(number for number, each in enumerate(log, 1) if is_last(each)) == looked_at


def test_without_a_time_their_number_ends_it() -> None:
    is_last = last_of_the_centre()
    assert [is_last(OLD) for _ in range(LOOK_BACK)].index(True) == LOOK_BACK - 1


@pytest.mark.parametrize(("row", "made_at"), [(7, NOON - 99 * HOUR), (7, NOON + 99 * HOUR), (3, NOON)])
def test_a_commit_holds_the_row_that_it_names_whatever_its_clock_says(row: int, made_at: datetime) -> None:
    assert already_committed([naming(row, made_at)], {CHANGE.request: [CHANGE]}) == {"c" * 40: [CHANGE.request]}


def test_an_old_commit_of_another_row_is_of_a_request_that_was_forgotten() -> None:
    assert already_committed([naming(3, NOON - 2 * HOUR)], {CHANGE.request: [CHANGE]}) == {}


def test_an_old_commit_of_an_earlier_version_names_no_row() -> None:
    """Then clocks decide."""
    message = f"Seal\n\n{REQUEST_TRAILER}: {CHANGE.request}\n"
    assert already_committed([commit(message, NOON - 2 * HOUR)], {CHANGE.request: [CHANGE]}) == {}
    assert already_committed([commit(message)], {CHANGE.request: [CHANGE]})
