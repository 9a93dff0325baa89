"""How long to wait: jitter between heartbeats, and ever longer while something is away. All in seconds."""

from random import Random

SHORTEST_INTERVAL = 5.0
LONGEST_INTERVAL = 3600.0
JITTER = 0.1
"""Heartbeats are this part of their interval early or late, so that edges that began together drift apart."""
FIRST_BACKOFF = 2.0
LONGEST_BACKOFF = 300.0
SHORTEST_PAUSE = 1.0
LONGEST_ASKED = 3600.0
"""A longer ``Retry-After`` is not believed: it would keep the edge silent until somebody comes."""


def until_next_beat(interval: float, chance: Random) -> float:
    """The pause after a heartbeat, when the centre wants one each ``interval``."""
    bounded = min(max(interval, SHORTEST_INTERVAL), LONGEST_INTERVAL)
    return bounded * chance.uniform(1 - JITTER, 1 + JITTER)


class Backoff:
    """Exponential backoff with full jitter: what fell silent together does not come back together.

    Args:
        longest: no pause of our own is longer.
    """

    def __init__(self, chance: Random, *, first: float = FIRST_BACKOFF, longest: float = LONGEST_BACKOFF) -> None:
        self._chance = chance
        self._first = first
        self._longest = longest
        self._ceiling = first

    def after_failure(self, asked: float = 0.0) -> float:
        """The pause after one more failure.

        Args:
            asked: what the other side wants as the least (``Retry-After``); the jitter comes on top.
        """
        drawn = self._chance.uniform(0.0, self._ceiling)
        self._ceiling = min(2 * self._ceiling, self._longest)
        return max(SHORTEST_PAUSE, min(asked, LONGEST_ASKED) + drawn)

    def reset(self) -> None:
        """It went well: the next failure is the first again."""
        self._ceiling = self._first
