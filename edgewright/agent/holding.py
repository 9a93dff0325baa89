"""How long the centre may hold its answer back, and when to call again after it.

Whoever waits hears at once what is wanted. Something between us and the centre may cut a connection that is silent
for too long; that looks as a centre that starts anew does, so two cuts in a row count, and not for ever.
"""

from collections.abc import Mapping
from random import Random

from edgewright.agent.messages import ReceivedHeartbeatAnswer, SentHeartbeat
from edgewright.agent.pauses import LONGEST_ASKED, SHORTEST_INTERVAL, SHORTEST_PAUSE, until_next_beat
from edgewright.agent.timing import Clock
from edgewright.errors import EdgewrightError, Waiting

LONGEST_WAIT = 50.0
"""Seconds. Most proxies cut after 60."""
DRIFT = 0.2
"""Part of a wait that is left out at most, at random. After a stall or a pause of the centre, thousands of edges are
answered at the same moment; with waits of equal length they would call at the same moment from then on."""
LEAST_CUT = 2.0
"""Seconds after which a broken connection is one that was cut while it was silent."""
SHORTER = 0.7
"""Share of the time after which it was cut twice that is offered from then on."""
CUTS_FORGOTTEN = 3600.0
"""Seconds after which the longest wait is tried again."""
SPREAD = 30.0
"""Seconds over which those come back who were all cut off at once; fewer where the lease is short."""
HASTY_CALLS, HASTY_SECONDS = 30, 2 * SHORTEST_INTERVAL
"""So many times in a row the centre is called at once when it wanted something else, then each time so many seconds
later, which also is how long it takes to earn one more such call. Somebody may put many secrets one by one."""
FULL = 0.9
"""Share of the offered time from which on it counts as used up."""


class Holding:
    """Chooses how long the centre may hold back its answers to one agent."""

    def __init__(self, clock: Clock, chance: Random) -> None:
        self._clock = clock
        self._chance = chance
        self._longest = LONGEST_WAIT
        self._shortened_at = 0.0
        self._cuts = 0
        self._is_wary = False
        self._hasty, self._hasty_at = float(HASTY_CALLS), clock.monotonic()
        self._interval = SPREAD
        self.wants_digest: str | None = None
        """What the last answer said; None: this centre holds nothing back."""
        self.revisions: Mapping[str, str] = {}

    @property
    def known_digest(self) -> str | None:
        """What to say that is known; None: the answer is to come at once, and tells what is wanted all the same."""
        return None if self._is_wary or not self._may_hold else self.wants_digest

    @property
    def _may_hold(self) -> bool:
        return self._longest >= SHORTEST_INTERVAL

    def offer(self, interval: float) -> float:
        """Seconds for which the next answer may be held back; the centre wants a heartbeat each ``interval``."""
        if self._longest < LONGEST_WAIT and self._clock.monotonic() - self._shortened_at >= CUTS_FORGOTTEN:
            self._longest, self._cuts = LONGEST_WAIT, 1
        self._interval = interval
        longest = min(max(self._longest, SHORTEST_INTERVAL), interval)
        return max(min(SHORTEST_INTERVAL, longest), longest * self._chance.uniform(1 - DRIFT, 1.0))

    def forget(self) -> None:
        """It is another centre, or another credential."""
        self.wants_digest, self.revisions = None, {}

    def answered(self, beat: SentHeartbeat, answer: ReceivedHeartbeatAnswer, seconds: float) -> float:
        """Takes note of an answer; returns the seconds to the next heartbeat.

        Args:
            seconds: that it took.
        """
        self._is_wary = False
        is_news = answer.wants_digest != self.wants_digest or dict(answer.revisions) != dict(self.revisions)
        could_be_held = beat.wants_digest is not None
        self.wants_digest, self.revisions = answer.wants_digest, answer.revisions
        if answer.wants_digest is None or not self._may_hold:
            return until_next_beat(answer.interval, self._chance)
        if could_be_held and seconds >= FULL * beat.wait:
            self._cuts = 0
            return self._chance.uniform(0.0, SHORTEST_PAUSE)
        if not could_be_held:
            return SHORTEST_PAUSE
        if is_news:
            return self._soon()
        # No room at the centre, or it ends: then all come back.
        return self._chance.uniform(SHORTEST_PAUSE, until_next_beat(answer.interval, self._chance))

    def was_cut(self, beat: SentHeartbeat, trouble: EdgewrightError, seconds: float) -> float | None:
        """The seconds to the next heartbeat, if this one broke off while its answer was held back; else None."""
        if beat.wants_digest is None or seconds < LEAST_CUT or not isinstance(trouble, Waiting):
            return None
        self._cuts += 1
        self._is_wary = True  # whether the centre is there at all is asked without waiting
        if self._cuts > 1:
            self._longest = SHORTER * min(seconds, beat.wait)
            self._shortened_at = self._clock.monotonic()
        spread = self._chance.uniform(SHORTEST_PAUSE, max(SHORTEST_PAUSE, min(SPREAD, self._interval)))
        return spread + min(trouble.retry_after, LONGEST_ASKED)

    def _soon(self) -> float:
        now = self._clock.monotonic()
        earned = min(self._hasty + (now - self._hasty_at) / HASTY_SECONDS, HASTY_CALLS)
        self._hasty, self._hasty_at = max(earned - 1, -1.0), now
        return max(SHORTEST_PAUSE, min(-self._hasty * HASTY_SECONDS, self._interval))
