"""Check-in windows: when to expect calls from an edge that must not call all the time.

A window is written ``22:00-06:00`` or ``Mon-Fri,Sun 22:00-06:00``, in the time zone of the cluster. If it ends before
it begins, it ends on the next day; its days are those on which it begins.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MOST_WINDOWS = 20
AHEAD = timedelta(days=8)
"""Every window opens within this time."""
_DAY = f"(?:{'|'.join(DAYS)})"
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
WINDOW = rf"^(?:{_DAY}(?:-{_DAY})?(?:,{_DAY}(?:-{_DAY})?)* )?{_TIME}-(?:{_TIME}|24:00)$"
Span = tuple[datetime, datetime]
"""When it opens, and when it closes."""


class CheckIn(BaseModel):
    """When an edge calls.

    Args:
        windows: at least one.
        time_zone: its name in the IANA time zone database, such as ``Europe/London``.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    windows: Annotated[
        tuple[Annotated[str, Field(pattern=WINDOW, max_length=60)], ...], Field(min_length=1, max_length=MOST_WINDOWS)
    ]
    time_zone: Annotated[str, Field(pattern=r"^[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*$", max_length=60)] = "UTC"


@dataclass(frozen=True)
class Timetable:
    """The windows of one cluster as times. All times have a time zone; returned ones are in UTC."""

    check_in: CheckIn
    zone: tzinfo

    def spans(self, now: datetime) -> Sequence[Span]:
        """Returns windows that are open now or open within ``AHEAD``, in order; adjacent windows are merged."""
        merged: list[Span] = []
        for opens, closes in sorted(self._all(now)):
            if merged and opens <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(closes, merged[-1][1]))
            else:
                merged.append((opens, closes))
        return [span for span in merged if span[1] > now]

    def next_opening(self, now: datetime) -> datetime | None:
        """Returns when the next window opens; None: one is open now."""
        spans = self.spans(now)
        return spans[0][0] if spans and spans[0][0] > now else None

    def next_turn(self, now: datetime) -> datetime | None:
        """Returns when a window opens or closes next."""
        turns = (turn for span in self.spans(now) for turn in span)
        return next((turn for turn in turns if turn > now), None)

    def lease_end(self, heard: datetime, lease: timedelta) -> datetime:
        """Returns when the lease of an edge expires that calls at ``heard``.

        Silence only counts while a window is open: a lease that would end in a later window, or outside all windows,
        ends a full lease after the next window opens.
        """
        spans = self.spans(heard)
        due = heard + lease
        if any(opens <= heard and due <= closes for opens, closes in spans):
            return due
        return next((opens + lease for opens, _ in spans if opens > heard), due)

    def _all(self, now: datetime) -> Iterator[Span]:
        first = now.astimezone(self.zone).date() - timedelta(days=1)
        for window in self.check_in.windows:
            days, begins, ends = _parts(window)
            over_midnight = timedelta(days=1 if ends <= begins else 0)
            for day in (first + timedelta(days=ahead) for ahead in range(AHEAD.days + 2)):
                if day.weekday() in days:
                    opens = datetime.combine(day, begins, self.zone).astimezone(UTC)
                    closes = datetime.combine(day + over_midnight, ends, self.zone).astimezone(UTC)
                    yield opens, closes


def _parts(window: str) -> tuple[frozenset[int], time, time]:
    """Days (0: Monday), beginning and end of a window that ``WINDOW`` matches; 24:00 is the next day's 00:00."""
    days, _, times = window.rpartition(" ")
    begins, ends = (time.fromisoformat(each.replace("24:00", "00:00")) for each in re.split("-", times))
    return _days(days), begins, ends


def _days(text: str) -> frozenset[int]:
    if not text:
        return frozenset(range(7))
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        begin, end = DAYS.index(first), DAYS.index(last or first)
        found.update((begin + ahead) % 7 for ahead in range((end - begin) % 7 + 1))
    return frozenset(found)
