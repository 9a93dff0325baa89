"""How long the agent waits."""

from datetime import UTC, datetime
from random import Random

import pytest

from edgewright.agent.pauses import LONGEST_ASKED, LONGEST_BACKOFF, SHORTEST_PAUSE, Backoff, until_next_beat

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Highest(Random):
    """Chance that always draws the most."""

    def uniform(self, a: float, b: float) -> float:
        return b


def test_heartbeats_of_edges_that_began_together_drift_apart() -> None:
    pauses = [until_next_beat(100, Random(seed)) for seed in range(1000)]
    assert 90 <= min(pauses) < 91 and 109 < max(pauses) <= 110


@pytest.mark.parametrize(("asked", "least", "most"), [(0, 4.5, 5.5), (-1, 4.5, 5.5), (10**9, 3240, 3960)])
def test_no_answer_makes_the_agent_hammer_or_fall_silent(asked: float, least: float, most: float) -> None:
    assert all(least <= until_next_beat(asked, Random(seed)) <= most for seed in range(100))


def test_each_failure_doubles_the_range_up_to_five_minutes() -> None:
    backoff = Backoff(Highest())
    assert [backoff.after_failure() for _ in range(10)] == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    backoff.reset()
    assert backoff.after_failure() == 2


def test_a_pause_is_anywhere_in_its_range_and_never_none() -> None:
    drawn = []
    for seed in range(1000):
        backoff = Backoff(Random(seed))
        drawn.append([backoff.after_failure() for _ in range(12)][-1])
    assert min(drawn) >= SHORTEST_PAUSE and max(drawn) <= LONGEST_BACKOFF
    assert sum(pause < LONGEST_BACKOFF / 2 for pause in drawn) == pytest.approx(500, abs=80)


def test_what_the_centre_asks_for_is_the_least_and_jitter_comes_on_top() -> None:
    assert 120 <= Backoff(Random(1)).after_failure(120) <= 122
    assert Backoff(Highest()).after_failure(10**9) == LONGEST_ASKED + 2
