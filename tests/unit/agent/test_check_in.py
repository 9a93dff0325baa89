"""An agent calls in its windows, whatever its clock says."""

from random import Random
from typing import Any

import pytest

from edgewright.agent.check_in import LATITUDE, SPREAD, WEEK, CheckInTimes, read_spans

HOUR, DAY = 3600.0, 86400.0


def agent(*spans: tuple[float, float], told_at: float = 0.0) -> CheckInTimes:
    """One that has started long ago."""
    check_in = CheckInTimes(Random(7), -DAY)
    check_in.told(spans, told_at)
    return check_in


def test_without_windows_it_calls_at_any_time() -> None:
    assert agent().postponed(5.0, 100.0) == 5.0


def test_it_waits_for_the_next_window_and_not_all_call_at_its_opening() -> None:
    waiting = agent((HOUR, 2 * HOUR))
    moments = {waiting.postponed(100.0, 90.0) for _ in range(50)}
    assert len(moments) == 50
    assert all(HOUR <= moment <= HOUR + SPREAD for moment in moments)
    assert HOUR <= waiting.postponed(100.0, 5.0) <= HOUR + 5
    assert waiting.postponed(1.5 * HOUR, 90.0) == 1.5 * HOUR


def test_windows_come_again_each_week_for_an_edge_that_hears_nothing() -> None:
    waiting = agent((HOUR, 2 * HOUR), (DAY, DAY + HOUR))
    for weeks in range(5):
        begun = weeks * WEEK
        assert waiting.is_open(begun + 1.5 * HOUR) and not waiting.is_open(begun + 3 * HOUR)
        assert begun + DAY <= waiting.postponed(begun + 3 * HOUR, 60.0) <= begun + DAY + SPREAD
        assert begun + WEEK + HOUR <= waiting.postponed(begun + 2 * DAY, 60.0)


def test_one_that_was_open_when_it_was_told_is_still() -> None:
    assert agent((-HOUR, HOUR), told_at=10 * DAY).is_open(10 * DAY + 60)
    assert not agent((-HOUR, HOUR), told_at=10 * DAY).is_open(10 * DAY + 2 * HOUR)


def test_after_its_start_it_calls_at_any_time_for_a_while() -> None:
    fresh = CheckInTimes(Random(7), started=50.0)
    fresh.told(((DAY, 2 * DAY),), 60.0)
    assert fresh.postponed(60.0, 100.0) == 60.0
    assert fresh.postponed(50 + LATITUDE, 100.0) >= DAY


@pytest.mark.parametrize(
    "said",
    [
        *(None, 7, {}, ["x"], [{}], [{"opens_in": 1}], [{"opens_in": 2, "closes_in": 1}]),
        *([{"opens_in": True, "closes_in": 2}], [{"opens_in": 0, "closes_in": 10**400}]),
        *([{"opens_in": 0, "closes_in": float("nan")}], [{"opens_in": 1, "closes_in": 2}, {}]),
    ],
)
def test_what_cannot_be_read_keeps_nobody_silent(said: Any) -> None:
    assert read_spans(said) == ()


def test_what_the_centre_says_is_read() -> None:
    said = [{"opens_in": -5, "closes_in": 3600.5}, {"opens_in": 86400, "closes_in": 90000}]
    assert read_spans(said) == ((-5.0, 3600.5), (86400.0, 90000.0))
