"""The HTTP header ``Retry-After``, as anybody may have written it (RFC 9110, section 10.2.3)."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def seconds_asked_for(retry_after: str | None, *, now: datetime) -> float:
    """Seconds that the header asks for: a number of them, or a date.

    Args:
        retry_after: its value; None: there is none.
        now: aware.

    Returns:
        0 where it asks for none, or for nothing that can be understood. Without a bound: the caller has one.
    """
    if retry_after is None:
        return 0.0
    if retry_after.strip().isascii() and retry_after.strip().isdigit():
        return float(retry_after)
    try:
        until = parsedate_to_datetime(retry_after)
    except (ValueError, OverflowError):
        return 0.0
    return max(0.0, (until.replace(tzinfo=until.tzinfo or UTC) - now).total_seconds())
