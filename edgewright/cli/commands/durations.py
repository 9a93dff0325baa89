"""Durations: as people type them, and as they read them."""

import itertools
import re
from datetime import UTC, datetime

from edgewright.cli.failures import CliError, ExitCode

_TYPED = re.compile(r"(\d{1,9})([smhd]?)", re.ASCII)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_WORDS = ((86400, "days"), (3600, "h"), (60, "min"))


def seconds_of(text: str, option: str, *, shortest: int = 0, longest: int | None = None) -> int:
    """The seconds that a text such as ``90``, ``45s``, ``10m``, ``2h`` or ``7d`` means.

    Args:
        option: what the text was given to; named in the error.
        shortest, longest: bounds, in seconds.

    Raises:
        CliError: it is no duration, or out of bounds.
    """
    match = _TYPED.fullmatch(text)
    if match is None:
        raise CliError(
            f"{option} takes a duration: a number with s, m, h or d.", f"For example {option} 2h.", ExitCode.USAGE
        )
    seconds = int(match[1]) * _SECONDS[match[2]]
    if seconds < shortest or (longest is not None and seconds > longest):
        bounds = f"at least {spoken(shortest)}" + (f" and at most {spoken(longest)}" if longest is not None else "")
        raise CliError(
            f"{option} takes {bounds}.", f"For example {option} {_short(shortest or longest or 1)}.", ExitCode.USAGE
        )
    return seconds


def is_duration(text: str) -> bool:
    """Whether a text has the form of a duration."""
    return _TYPED.fullmatch(text) is not None


def spoken(seconds: float) -> str:
    """A duration for people.

    >>> spoken(0.214), spoken(42.3), spoken(200), spoken(7200), spoken(604800)
    ('0.21 s', '42.3 s', '3 min 20 s', '2 h', '7 days')
    """
    if seconds < 10 and seconds != int(seconds):
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s".replace(".0 s", " s")
    return _in_words(round(seconds))


def _in_words(seconds: int) -> str:
    """The two largest units of 60 seconds or more."""
    units = [*_WORDS, (1, "s")]
    for (length, word), (smaller, smaller_word) in itertools.pairwise(units):
        if seconds >= length:
            count, rest = divmod(seconds, length)
            singular = "day" if (count, word) == (1, "days") else word
            return f"{count} {singular}" + (f" {rest // smaller} {smaller_word}" if rest // smaller else "")
    return f"{seconds} s"


def until(moment: str) -> str:
    """How long it is, by this machine's clock, until a moment that the gateway named."""
    return spoken(max(0, round((datetime.fromisoformat(moment) - datetime.now(UTC)).total_seconds())))


_DAYS_AGO = 7
"""What is longer ago is told by its date."""


def ago(moment: str | None, now: datetime | None = None) -> str:
    """How long ago a moment of the API was; its date where that says more; empty for none.

    Args:
        now: by default, by this machine's clock. Where that is behind, what has just happened is ``now``, too.

    >>> now = datetime.fromisoformat("2031-02-03T12:00:00+00:00")
    >>> ago("2031-02-03T11:59:48Z", now), ago("2031-02-03T12:00:09Z", now), ago("2030-12-24T12:00:00Z", now)
    ('12s ago', 'now', '2030-12-24')
    """
    if not moment:
        return ""
    at = datetime.fromisoformat(moment)
    seconds = int(((now or datetime.now(UTC)) - at).total_seconds())
    if seconds < 1:
        return "now"
    return _date(at) if seconds >= _DAYS_AGO * 86400 else f"{_short(seconds)} ago"


def ahead(moment: str | None, now: datetime | None = None) -> str:
    """How long it is until a moment of the API; its date where that says more; ``now`` once it is over.

    >>> now = datetime.fromisoformat("2031-02-03T12:00:00+00:00")
    >>> ahead("2031-02-03T12:03:20Z", now), ahead("2031-02-03T11:00:00Z", now), ahead("2031-06-01T12:00:00Z", now)
    ('in 3m', 'now', '2031-06-01')
    """
    if not moment:
        return ""
    at = datetime.fromisoformat(moment)
    seconds = int((at - (now or datetime.now(UTC))).total_seconds())
    if seconds < 1:
        return "now"
    return _date(at) if seconds >= _DAYS_AGO * 86400 else f"in {_short(seconds)}"


def _short(seconds: int) -> str:
    """The largest unit alone."""
    length, unit = next((length, unit) for unit, length in reversed(_SECONDS.items()) if unit and seconds >= length)
    return f"{seconds // length}{unit}"


def _date(at: datetime) -> str:
    return at.astimezone(UTC).date().isoformat()
