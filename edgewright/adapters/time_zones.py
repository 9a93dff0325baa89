"""Time zones by their names, as the IANA time zone database has them."""

from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from edgewright.domain.check_in import CheckIn, Timetable
from edgewright.domain.cluster import ClusterSettings
from edgewright.errors import Invalid


@lru_cache(maxsize=1024)
def timetable(check_in: CheckIn) -> Timetable:
    """The windows on real time.

    Raises:
        Invalid: ``time_zone_unknown``.
    """
    try:
        zone = ZoneInfo(check_in.time_zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Invalid(
            f"There is no time zone {check_in.time_zone}.",
            code="time_zone_unknown",
            where="/check_in/time_zone",
            hint="Name one of the IANA time zone database, such as Europe/London or UTC.",
        ) from None
    return Timetable(check_in, zone)


def timetable_of(settings: ClusterSettings) -> Timetable | None:
    """The windows of a cluster; None: it may call at any time."""
    return None if settings.check_in is None else timetable(settings.check_in)
