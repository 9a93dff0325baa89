"""Check-in windows: when the agent calls, where the centre wants that.

They are counted in seconds after the answer that told them, so that a clock which is wrong does no harm; each comes
again every week, until another answer tells others. For a while after its start the agent calls at any time: somebody
may have just attached it, and stand beside the machine.
"""

import math
from collections.abc import Mapping
from random import Random

WEEK = 7 * 86400.0
MOST_SPANS = 1000
LATITUDE = 900.0
"""Seconds after a start in which the windows do not count."""
SPREAD = 60.0
"""Seconds after the opening of a window within which agents call that have waited for it, at most."""
Span = tuple[float, float]


class CheckInTimes:
    """The windows that were told last.

    Args:
        started: as ``Clock.monotonic`` counts, and so are all other moments.
    """

    def __init__(self, chance: Random, started: float) -> None:
        self._chance = chance
        self._free_until = started + LATITUDE
        self._spans: tuple[Span, ...] = ()

    def told(self, spans: tuple[Span, ...], at: float) -> None:
        """Takes note of an answer. ``at``: when it came."""
        self._spans = tuple((at + opens, at + closes) for opens, closes in spans)

    def is_open(self, at: float) -> bool:
        """Whether the agent may call then."""
        return self._opening(at) <= at

    def postponed(self, at: float, interval: float) -> float:
        """When to call instead: then, or soon after the next window has opened.

        Args:
            interval: seconds between two heartbeats; the lease is longer than that.
        """
        opening = self._opening(at)
        return at if opening <= at else opening + self._chance.uniform(0, min(interval, SPREAD))

    def _opening(self, at: float) -> float:
        """When the next window opens, or the open one has; without any, at any time."""
        if at < self._free_until:
            return at
        return min((_next(span, at) for span in self._spans), default=at)


def _next(span: Span, at: float) -> float:
    """When a window opens that has not closed yet."""
    opens, closes = span
    weeks = max(0, math.floor((at - closes) / WEEK) + 1)
    return opens + weeks * WEEK


def read_spans(said: object) -> tuple[Span, ...]:
    """Windows as JSON has them; empty if one cannot be read: then the agent calls at any time."""
    if not isinstance(said, list) or len(said) > MOST_SPANS:
        return ()
    spans = [_span(each) for each in said]
    return tuple(span for span in spans if span is not None) if None not in spans else ()


def _span(said: object) -> Span | None:
    if not isinstance(said, Mapping):
        return None
    opens, closes = _seconds(said.get("opens_in")), _seconds(said.get("closes_in"))
    return (opens, closes) if opens is not None and closes is not None and opens < closes else None


def _seconds(said: object) -> float | None:
    if isinstance(said, bool) or not isinstance(said, int | float):
        return None
    return float(said) if abs(said) <= 2 * WEEK else None
