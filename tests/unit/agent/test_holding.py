"""How long an answer may be held back, and when the agent calls again after it."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from scripted_centre import START, QuickClock

from edgewright.agent.holding import DRIFT, HASTY_CALLS, HASTY_SECONDS, LONGEST_WAIT, SPREAD, Holding
from edgewright.agent.messages import ReceivedHeartbeatAnswer, SentHeartbeat
from edgewright.agent.pauses import SHORTEST_INTERVAL
from edgewright.errors import Forbidden, Waiting

INTERVAL = 100.0
AWAY = Waiting("The centre cannot be reached.", code="centre_away", retry_after=0)


class Talk:
    """An agent that talks to a centre which holds answers back, if it offers to wait."""

    def __init__(self) -> None:
        self.clock = QuickClock(1e9)
        self.holding = Holding(self.clock, Random(5))

    def beat(self) -> SentHeartbeat:
        holding = self.holding
        return SentHeartbeat(
            START, "n", wait=holding.offer(INTERVAL), wants_digest=holding.known_digest, revisions=holding.revisions
        )

    def heard(self, seconds: float, digest: str | None = "same", **revisions: str) -> float:
        beat = self.beat()
        answer = ReceivedHeartbeatAnswer("active", INTERVAL)
        if beat.wait > 0:
            answer = replace(answer, wants_digest=digest, revisions=revisions)
        return self.holding.answered(beat, answer, seconds)

    def cut(self, seconds: float, trouble: Exception = AWAY) -> float | None:
        assert isinstance(trouble, Waiting | Forbidden)
        return self.holding.was_cut(self.beat(), trouble, seconds)


def offers(talk: Talk, longest: float) -> bool:
    """Whether the agent offers to wait so many seconds, or a little less."""
    return all((1 - DRIFT) * longest <= talk.beat().wait <= longest * 1.001 for _ in range(20))


def test_a_centre_that_holds_nothing_back_is_called_as_ever() -> None:
    talk = Talk()
    assert all(90 <= talk.heard(0.1, None) <= 110 for _ in range(20))


def test_who_has_waited_long_enough_waits_on() -> None:
    talk = Talk()
    talk.heard(0.1)
    assert offers(talk, LONGEST_WAIT)
    assert all(talk.heard(LONGEST_WAIT) <= 1 for _ in range(20))


def test_no_offer_is_longer_than_the_centre_wants_a_heartbeat() -> None:
    assert all((1 - DRIFT) * 20 <= Talk().holding.offer(20) <= 20 for _ in range(20))


def test_no_offer_is_shorter_than_a_centre_may_ask_for() -> None:
    assert {Talk().holding.offer(SHORTEST_INTERVAL) for _ in range(20)} == {SHORTEST_INTERVAL}


def test_edges_that_were_answered_together_call_at_different_moments_before_long() -> None:
    """A gateway that stalled answers thousands at once. That must not go on for ever."""
    chance, calls = Random(11), []
    for _ in range(1000):
        holding = Holding(QuickClock(1e9), Random(chance.random()))
        calls.append(sum(holding.offer(INTERVAL) for _ in range(12)) % LONGEST_WAIT)
    seconds = Counter(int(call) for call in calls)
    assert max(seconds.values()) < 4 * len(calls) / LONGEST_WAIT


def test_news_are_followed_by_the_next_call_within_seconds() -> None:
    talk = Talk()
    talk.heard(0.1)
    assert talk.heard(17.0, **{"self-link": "a" * 40}) <= 2
    assert talk.heard(17.0, "other", **{"self-link": "a" * 40}) <= 2


def test_many_changes_in_a_row_are_each_heard_at_once() -> None:
    """A team puts its secrets one by one."""
    talk = Talk()
    talk.heard(0.1)
    pauses = [talk.heard(0.1, **{"self-link": f"{number:040x}"}) for number in range(HASTY_CALLS)]
    assert max(pauses) <= 1


def test_a_centre_that_never_has_enough_is_not_called_each_second() -> None:
    talk, calls = Talk(), 0
    while talk.clock.monotonic() < 3600:
        talk.clock._passed += talk.heard(0.1, str(calls))
        calls += 1
    assert calls <= 3600 / HASTY_SECONDS + HASTY_CALLS + 1


def test_those_who_were_sent_away_together_come_back_spread() -> None:
    """The gateway ends, or it has no room: nothing is wanted."""
    talk = Talk()
    talk.heard(0.1)
    pauses = [talk.heard(3.0) for _ in range(200)]
    assert min(pauses) >= 1 and max(pauses) > SPREAD
    assert sum(1 for pause in pauses if pause < SPREAD / 2) < 60


def test_one_cut_is_a_gateway_that_starts_anew() -> None:
    talk = Talk()
    talk.heard(0.1)
    pauses = []
    for _ in range(100):
        pause = talk.cut(20.0)
        assert pause is not None
        pauses.append(pause)
        assert talk.beat().wants_digest is None, "whether it is there is asked without waiting"
        assert talk.heard(0.1) <= 2, "and then it waits again: whatever is wanted meanwhile must not take minutes"
        assert talk.beat().wants_digest is not None
        talk.heard(LONGEST_WAIT)
        assert offers(talk, LONGEST_WAIT)
    assert min(pauses) < 5 and max(pauses) > SPREAD - 5, "all edges come back from this, so not at once"


def test_a_proxy_that_cuts_is_given_less_and_not_for_ever() -> None:
    talk = Talk()
    talk.heard(0.1)
    for _ in range(2):
        assert talk.cut(30.0) is not None
        talk.heard(0.1)
    assert offers(talk, 21.0)
    talk.heard(21.0)
    assert offers(talk, 21.0)
    talk.clock._passed += 3600
    assert offers(talk, LONGEST_WAIT)
    talk.cut(30.0)
    talk.heard(0.1)
    assert offers(talk, 21.0), "once is enough now"


def test_where_nothing_can_be_held_each_heartbeat_still_hears_what_is_wanted() -> None:
    talk = Talk()
    talk.heard(0.1)
    for _ in range(2):
        talk.cut(4.0)
        talk.heard(0.1)
    assert talk.beat().wants_digest is None
    assert 90 <= talk.heard(0.1, **{"self-link": "b" * 40}) <= 110
    assert talk.holding.revisions == {"self-link": "b" * 40}


def test_a_centre_that_says_when_to_come_back_is_not_called_before() -> None:
    talk = Talk()
    talk.heard(0.1)
    pause = talk.cut(20.0, Waiting("It ends.", code="centre_busy", retry_after=40))
    assert pause is not None and pause > 40


@pytest.mark.parametrize(("seconds", "trouble"), [(0.5, AWAY), (20.0, Forbidden("No.", code="refused_by_centre"))])
def test_not_every_failure_is_a_cut(seconds: float, trouble: Exception) -> None:
    talk = Talk()
    talk.heard(0.1)
    assert talk.cut(seconds, trouble) is None


def test_no_pause_is_longer_than_a_short_lease_lets_it_be() -> None:
    """A third of the lease is the interval: who comes back later is taken for silent."""
    talk = Talk()
    pauses = []
    for _ in range(100):
        talk.holding.offer(5)
        beat = SentHeartbeat(START, "n", wait=5, wants_digest="same", revisions={})
        pauses.append(talk.holding.answered(beat, ReceivedHeartbeatAnswer("active", 5, wants_digest="same"), 0.1))
        pauses.append(talk.holding.was_cut(beat, AWAY, 3.0) or 0.0)
    assert max(pauses) <= 5.5
