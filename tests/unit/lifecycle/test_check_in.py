"""When an edge is expected to call, and when its silence means something."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from pydantic import ValidationError

from edgewright.adapters.time_zones import timetable
from edgewright.domain.check_in import CheckIn, Timetable
from edgewright.errors import Invalid

BERLIN = ZoneInfo("Europe/Berlin")
LEASE = timedelta(minutes=5)


def at(text: str, zone: ZoneInfo | None = None) -> datetime:
    """Such as ``2026-03-02 22:00``; that is a Monday."""
    return datetime.fromisoformat(text).replace(tzinfo=zone or UTC)


def table(*windows: str, zone: str = "UTC") -> Timetable:
    return timetable(CheckIn(windows=windows, time_zone=zone))


def test_a_window_over_midnight_is_open_on_both_sides_of_it() -> None:
    nights = table("22:00-06:00")
    assert nights.next_opening(at("2026-03-02 23:00")) is None
    assert nights.next_opening(at("2026-03-03 05:59")) is None
    assert nights.next_opening(at("2026-03-03 06:00")) == at("2026-03-03 22:00")
    assert nights.next_turn(at("2026-03-03 06:00")) == at("2026-03-03 22:00")
    assert nights.next_turn(at("2026-03-03 22:00")) == at("2026-03-04 06:00")


def test_days_are_those_on_which_a_window_begins() -> None:
    weekdays = table("Mon-Fri 22:00-06:00")
    assert weekdays.next_opening(at("2026-03-07 05:00")) is None, "Friday's"
    assert weekdays.next_opening(at("2026-03-07 12:00")) == at("2026-03-09 22:00")
    around = table("Sat-Mon,Wed 08:00-09:00")
    opens = [opens.strftime("%a") for opens, _ in around.spans(at("2026-03-02 00:00"))][:5]
    assert opens == ["Mon", "Wed", "Sat", "Sun", "Mon"]


def test_windows_that_touch_are_one() -> None:
    turn = table("08:00-12:00", "12:00-24:00", "00:00-08:00").next_turn(at("2026-03-02 10:00"))
    assert turn is not None and turn > at("2026-03-09 00:00")
    assert table("00:00-24:00").next_opening(at("2026-03-02 00:00")) is None
    assert table("08:00-08:00").next_opening(at("2026-03-02 07:00")) is None, "a whole day"


def test_windows_follow_the_clocks_of_their_zone() -> None:
    night = table("01:00-05:00", zone="Europe/Berlin")
    assert night.next_opening(at("2026-03-28 12:00")) == at("2026-03-29 01:00", BERLIN).astimezone(UTC)
    before, after = at("2026-03-28 01:00", BERLIN), at("2026-03-30 01:00", BERLIN)
    opens = [span[0] for span in night.spans(at("2026-03-27 12:00"))]
    assert opens[0] == before and opens[2] == after
    lengths = [closes - opens for opens, closes in night.spans(at("2026-03-27 12:00"))][:3]
    assert lengths == [timedelta(hours=4), timedelta(hours=3), timedelta(hours=4)]


@pytest.mark.parametrize(
    ("heard", "expires"),
    [
        ("2026-03-02 23:00", "2026-03-02 23:05"),
        ("2026-03-03 05:55", "2026-03-03 06:00"),
        ("2026-03-03 05:56", "2026-03-03 22:05"),
        ("2026-03-03 12:00", "2026-03-03 22:05"),
        ("2026-03-03 21:58", "2026-03-03 22:05"),
        ("2026-03-03 22:00", "2026-03-03 22:05"),
    ],
)
def test_silence_counts_only_while_a_window_is_open(heard: str, expires: str) -> None:
    assert table("22:00-06:00").lease_end(at(heard), LEASE) == at(expires)


def test_a_window_that_is_shorter_than_the_lease_is_waited_for_whole() -> None:
    short = table("02:00-02:10")
    assert short.lease_end(at("2026-03-02 02:05"), timedelta(minutes=30)) == at("2026-03-03 02:30")
    assert table("00:00-24:00").lease_end(at("2026-03-02 02:05"), timedelta(days=30)) == at("2026-04-01 02:05")


@pytest.mark.parametrize(
    "window", ["", "22-06", "24:00-06:00", "Mon 22:00", "mon 22:00-23:00", "Mon,22:00-23:00", "1:0-2:0"]
)
def test_what_is_no_window_is_refused(window: str) -> None:
    with pytest.raises(ValidationError):
        CheckIn(windows=(window,))


@pytest.mark.parametrize("zone", ["Europe/Atlantis", "Mars", "posix"])
def test_a_time_zone_that_is_not_there_is_refused_in_words(zone: str) -> None:
    with pytest.raises(Invalid) as refusal:
        table("22:00-06:00", zone=zone)
    assert (refusal.value.code, refusal.value.where) == ("time_zone_unknown", "/check_in/time_zone")
    assert zone in refusal.value.detail
