"""In which order new connections begin."""

import asyncio
import heapq
from collections.abc import Callable
from typing import Any, cast

import pytest

from api.connections.entrance import AT_ONCE, EVERY, REMEMBERED, Entrance


class Clockwork:
    """An event loop's clock and timers, turned by hand."""

    def __init__(self) -> None:
        self.now = 0.0
        self._timers: list[tuple[float, int, Callable[[], object]]] = []

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[..., object], *arguments: Any) -> None:
        heapq.heappush(self._timers, (self.now + seconds, len(self._timers), lambda: call(*arguments)))

    def pass_by(self, seconds: float) -> None:
        until = self.now + seconds
        while self._timers and self._timers[0][0] <= until:
            self.now, _, call = heapq.heappop(self._timers)
            call()
        self.now = until


class Door:
    """An entrance, and who has come in."""

    def __init__(self) -> None:
        self.clock = Clockwork()
        self.entrance = Entrance()
        self.inside: list[str] = []
        self.gone: set[str] = set()

    def arrive(self, source: str | None, name: str) -> None:
        def begin() -> bool:
            if name not in self.gone:
                self.inside.append(name)
            return name not in self.gone

        self.entrance.enter(cast(asyncio.AbstractEventLoop, self.clock), source, begin)


@pytest.fixture
def door() -> Door:
    return Door()


def test_a_crowd_of_one_source_begins_one_by_one_and_in_order(door: Door) -> None:
    names = [f"crowd-{number}" for number in range(100)]
    for name in names:
        door.arrive("192.0.2.1", name)
    assert door.inside == names[:AT_ONCE]
    door.clock.pass_by(EVERY * 10)
    assert door.inside == names[: AT_ONCE + 10]
    door.clock.pass_by(EVERY * 100)
    assert door.inside == names


def test_nobody_waits_for_the_crowd_of_another_source(door: Door) -> None:
    for number in range(500):
        door.arrive("192.0.2.1", f"crowd-{number}")
    door.arrive("192.0.2.2", "edge")
    assert door.inside[-1] == "edge"


def test_a_proxy_speaks_for_many_and_does_not_wait(door: Door) -> None:
    for number in range(500):
        door.arrive(None, f"{number}")
    assert len(door.inside) == 500


def test_whoever_went_away_while_waiting_takes_no_turn(door: Door) -> None:
    names = [f"crowd-{number}" for number in range(100)]
    for name in names:
        door.arrive("192.0.2.1", name)
    door.gone.update(names[AT_ONCE:-1])
    door.clock.pass_by(EVERY)
    assert door.inside == [*names[:AT_ONCE], names[-1]]


def test_after_a_rest_as_many_begin_at_once_as_before(door: Door) -> None:
    for _ in range(2):
        for number in range(AT_ONCE + 1):
            door.arrive("192.0.2.1", f"{number}")
        door.clock.pass_by(EVERY * AT_ONCE * 2)
    for number in range(AT_ONCE):
        door.arrive("192.0.2.1", f"{number}")
    assert len(door.inside) == 3 * AT_ONCE + 2


def test_sources_are_remembered_within_bounds_and_nobody_who_waits_is_forgotten(door: Door) -> None:
    for number in range(AT_ONCE + 1):
        door.arrive("192.0.2.1", f"crowd-{number}")
    for number in range(REMEMBERED):
        door.arrive(f"2001:db8::{number}", "other")
    assert len(door.entrance) == REMEMBERED
    door.clock.pass_by(EVERY * 2)
    assert f"crowd-{AT_ONCE}" in door.inside
