"""What shows that an attack took place, and what must never come of one; attackers count it in ``Target.met``."""

from collections.abc import Mapping, Sequence

OBEYED = "requests of a web page obeyed"
REFUSED_PAGES = "requests of a web page refused"
SPENT_TOKENS = "registrations with a spent token refused"
DEEP_REGISTRATIONS = "deep documents with a spent token refused"
DEEP_HEARTBEATS = "deep heartbeats refused"
WIDE_STATUSES = "wide statuses refused"
UNASKED = "answers of an edge that nobody asked for refused"
STATUSES = "changed statuses of an edge taken"
MANY_STATUSES = "changed statuses of an edge refused as too many"
CERTIFICATES = "sealing certificates of an edge put to use"
MANY_CERTIFICATES = "sealing certificates of an edge refused as too many"
SESSIONS = "sessions of an edge opened"
MANY_SESSIONS = "sessions of an edge refused as too many"
CUT = "idle connections cut"
LONG_HEADERS = "endless headers refused"
STREAMS = "event streams opened"
MANY_STREAMS = "event streams refused as too many"
MANY_FETCHES = "fetches refused beside unfinished ones"
COPIES = "pushes of copies refused"
OUT_OF_MEMORY = "pushes for which git got no more memory"
KNOWN_SCHEMAS = "schemas of a well-known Application refused"
PATTERNS = "texts that a hostile pattern was run on"
DEEP_VALUES = "deep values refused"
WIDE_VALUES = "wide values answered"
SIGNALS = "signals taken"
BULKS = "bulk writes committed"
LARGE_BULKS = "bulk writes refused as too large for one Secret"

ARRIVES: dict[str, Sequence[str]] = {
    "browser-page": [REFUSED_PAGES],
    "spent-token": [SPENT_TOKENS, DEEP_REGISTRATIONS],
    "edge": [
        DEEP_HEARTBEATS,
        WIDE_STATUSES,
        UNASKED,
        STATUSES,
        MANY_STATUSES,
        CERTIFICATES,
        MANY_CERTIFICATES,
        SESSIONS,
        MANY_SESSIONS,
    ],
    "connections": [CUT, LONG_HEADERS],
    "read-token": [STREAMS, MANY_STREAMS, MANY_FETCHES],
    "push-token": [COPIES, OUT_OF_MEMORY],
    "clusters-token": [KNOWN_SCHEMAS, PATTERNS, DEEP_VALUES, WIDE_VALUES],
    "bulk-writer": [BULKS, LARGE_BULKS],
    "signal-flood": [SIGNALS],
}
"""What has to come of each attack; if it does not, nobody has been attacked."""
NEEDED: dict[str, int] = {SIGNALS: 300}
"""How many of these it takes; one, unless told otherwise. Of signals, more than may wait: fewer are no flood."""
SUCCEEDS: dict[str, Sequence[str]] = {"browser-page": [OBEYED]}
"""What must never come of it."""


def missing(attack: str, met: Mapping[str, int]) -> list[str]:
    """What still has to come of an attack."""
    return [what for what in ARRIVES.get(attack, ()) if met.get(what, 0) < NEEDED.get(what, 1)]
