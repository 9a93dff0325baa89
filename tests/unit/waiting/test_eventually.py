"""How tests wait: what they ask must not take the processor from what they wait for."""

from dataclasses import dataclass

import pytest
import supervised


@dataclass
class Clock:
    """Stands in for the module ``time``: nothing takes time but sleep, and asking."""

    now: float = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(supervised, "time", clock)
    return clock


@pytest.mark.parametrize("asking", [0.0, 0.01, 0.05, 0.5])
def test_asking_takes_a_third_of_the_time_at_most(clock: Clock, asking: float) -> None:
    asked = 0

    def holds() -> bool:
        nonlocal asked
        asked += 1
        clock.now += asking
        return clock.now > 30

    supervised.eventually(holds)
    assert asked * asking < 30 / 3 + 1
    assert asked < 30 / supervised.LONGEST_PAUSE + 60


@pytest.mark.parametrize("holds_at", [0.0, 0.05, 0.5, 2.0])
def test_little_is_lost(clock: Clock, holds_at: float) -> None:
    supervised.eventually(lambda: clock.now >= holds_at)
    assert clock.now <= holds_at * 1.1 + 0.02


def test_what_never_holds_fails_the_test(clock: Clock) -> None:
    with pytest.raises(AssertionError, match="it did not happen in time"):
        supervised.eventually(lambda: False, seconds=5)
