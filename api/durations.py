"""Durations in query parameters: seconds, or a number with ``s``, ``m``, ``h`` or ``d``."""

import re
from datetime import timedelta

from edgewright.domain.ended import LONGEST_DEADLINE
from edgewright.errors import Invalid

_DURATION = re.compile(r"(\d{1,9})([smhd]?)", re.ASCII)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


def duration(text: str, *, where: str, longest: timedelta = LONGEST_DEADLINE) -> timedelta:
    """The duration that a text means.

    Raises:
        Invalid: code ``duration_invalid``.
    """
    match = _DURATION.fullmatch(text)
    if match is None or (length := timedelta(seconds=int(match[1]) * _SECONDS[match[2]])) > longest:
        raise Invalid(
            f"{where} is a number of seconds, or a number with s, m, h or d, of at most {longest.days} days.",
            code="duration_invalid",
            where=where,
        )
    return length
