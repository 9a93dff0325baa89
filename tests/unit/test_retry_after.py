"""``Retry-After`` is a number or a date, and whatever else stands there asks for nothing."""

from datetime import UTC, datetime

import pytest

from edgewright.retry_after import seconds_asked_for

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, 0),
        ("7", 7),
        (" 7 ", 7),
        ("9" * 400, float("inf")),
        ("Sun, 01 Mar 2026 12:01:30 GMT", 90),
        ("Sun, 01 Mar 2026 12:01:30 -0000", 90),
        ("Sun, 01 Mar 2026 11:58:30 GMT", 0),
        ("Mon, 99999999999999999999 Mar 2026 12:00:00 GMT", 0),
        ("Sun, 01 Mar 2026 12:00:00 +99999999999999999999", 0),
        ("soon", 0),
        ("nan", 0),
        ("²", 0),
        ("-5", 0),
        ("", 0),
    ],
)
def test_it_is_a_number_or_a_date_and_else_counts_as_none(header: str | None, seconds: float) -> None:
    assert seconds_asked_for(header, now=NOON) == seconds
