"""How far back a request is searched for that somebody may have committed."""

from datetime import UTC, datetime, timedelta
from itertools import chain, repeat

import pytest

from edgewright.application.committed_requests import LOOK_BACK, last_of_the_centre
from edgewright.ports.git_server import CommitSummary

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def commit(message: str, at: datetime = NOON) -> CommitSummary:
    return CommitSummary("c" * 40, message, "somebody", int(at.timestamp()))


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
