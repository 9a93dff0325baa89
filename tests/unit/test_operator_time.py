"""What one operator token may take of a gateway's time."""

import asyncio
import time
from threading import Event

import pytest

from api import operator_time
from api.operator_time import (
    BURST_SECONDS,
    FIRST_DEPOSIT,
    LONGEST_WAIT,
    METER,
    SHARE,
    THREAD_PRICE,
    WAITING,
    Meter,
    MeteredThreads,
    OperatorTime,
    metered,
    one_body_at_a_time,
    price_of_step,
)
from edgewright.errors import TooMany


class Watch:
    """A clock that goes on only while somebody sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def spent(watch: Watch) -> OperatorTime:
    return OperatorTime(clock=watch, sleep=watch.sleep)


async def test_a_token_that_has_spent_its_time_waits_and_another_one_does_not(
    spent: OperatorTime, watch: Watch
) -> None:
    (await spent.turn("ew_busy")).charge(BURST_SECONDS + 3.5 * SHARE)
    began = watch.now
    await spent.turn("ew_other")
    assert watch.now == began
    await spent.turn("ew_busy")
    assert watch.now - began >= 3.0


async def test_whoever_would_wait_too_long_is_told_when_to_come_back(spent: OperatorTime, watch: Watch) -> None:
    (await spent.turn("ew_busy")).charge(BURST_SECONDS + 10 * SHARE)
    began = watch.now
    with pytest.raises(TooMany) as refused:
        await spent.turn("ew_busy")
    assert refused.value.code == "too_many_requests"
    assert watch.now - began == pytest.approx(LONGEST_WAIT)
    assert refused.value.retry_after == pytest.approx(10 - LONGEST_WAIT, abs=0.1)
    await watch.sleep(refused.value.retry_after)
    await spent.turn("ew_busy")


async def test_a_burst_leaves_half_of_the_time_to_others(spent: OperatorTime, watch: Watch) -> None:
    began = watch.now
    for _ in range(20):
        (await spent.turn("ew_busy")).charge(0.02)
    assert 0.4 < watch.now - began < 2.0


async def test_a_script_of_small_requests_keeps_thirty_a_second_for_as_long_as_it_runs(
    spent: OperatorTime, watch: Watch
) -> None:
    began = watch.now
    for _ in range(1000):
        (await spent.turn("ew_script")).charge(price_of_step(0.003))
    assert 1000 / (watch.now - began) > 30


async def test_requests_pay_before_they_begin(spent: OperatorTime, watch: Watch) -> None:
    """Otherwise all of a burst would be at work before the first of them has cost anything."""
    began = watch.now
    for _ in range(100):
        await spent.turn("ew_burst")
    assert watch.now - began >= 100 * FIRST_DEPOSIT / SHARE - 2 * BURST_SECONDS / SHARE


async def test_what_a_request_has_not_cost_comes_back(spent: OperatorTime, watch: Watch) -> None:
    (await spent.turn("ew_frugal")).end()
    began = watch.now
    for _ in range(40):
        (await spent.turn("ew_frugal")).end()
    assert watch.now - began < 40 * FIRST_DEPOSIT


async def test_a_token_whose_requests_are_dear_pays_more_before_the_next(spent: OperatorTime, watch: Watch) -> None:
    for _ in range(20):
        meter = await spent.turn("ew_dear")
        meter.charge(0.1)
        meter.end()
    await watch.sleep(10)
    began = watch.now
    for _ in range(10):
        await spent.turn("ew_dear")
    assert watch.now - began >= 9 * 0.09 / SHARE - BURST_SECONDS / SHARE


async def test_sessions_spend_the_time_of_the_token_that_opened_them(spent: OperatorTime, watch: Watch) -> None:
    spent.learn("ew_first", "root")
    spent.learn("ew_second", "root")
    (await spent.turn("ew_first")).charge(BURST_SECONDS + 2 * SHARE)
    began = watch.now
    await spent.turn("ew_second")
    assert watch.now - began > 1.0


async def test_few_requests_wait_and_few_tokens_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    ever = asyncio.Event()

    async def never(_seconds: float) -> None:
        await ever.wait()

    accounts = OperatorTime(clock=lambda: 0.0, sleep=never)
    (await accounts.turn("ew_busy")).charge(100)
    waiting = [asyncio.create_task(accounts.turn("ew_busy")) for _ in range(WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(TooMany):
        await accounts.turn("ew_busy")
    for each in waiting:
        each.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    monkeypatch.setattr(operator_time, "REMEMBERED", 5)
    for number in range(20):
        await accounts.turn(f"ew_{number}")
        accounts.learn(f"ew_{number}", str(number))
    assert len(accounts) <= 6
    assert accounts.known("ew_0") is None
    assert accounts.known("ew_19") == "19"


async def test_whoever_goes_away_while_waiting_makes_room() -> None:
    accounts = OperatorTime(clock=lambda: 0.0, sleep=lambda _seconds: asyncio.Event().wait())
    meter = await accounts.turn("ew_busy")
    meter.charge(100)
    waiting = [asyncio.create_task(accounts.turn("ew_busy")) for _ in range(3)]
    await asyncio.sleep(0)
    assert meter.account.waiting == 3
    for each in waiting:
        each.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert meter.account.waiting == 0


class Bill(Meter):
    """Writes down what it charges from its making on."""

    def __init__(self, payer: str, spent: list[float]) -> None:
        self._spent: list[float] = []
        super().__init__(OperatorTime()._account(payer), time.monotonic)
        self._spent = spent

    def charge(self, seconds: float) -> None:
        self._spent.append(seconds)


def compute(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


async def test_a_request_is_charged_with_its_computing_and_not_with_its_waiting() -> None:
    charges: list[float] = []

    async def request() -> str:
        compute(0.02)
        await asyncio.sleep(0.2)
        compute(0.02)
        return "done"

    assert await metered(request(), Bill("a", charges)) == "done"
    assert sum(charges) >= 2 * price_of_step(0.02)
    assert len(charges) == 2


async def test_errors_and_cancellations_reach_a_metered_request() -> None:
    reached = asyncio.Event()

    async def request() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            reached.set()
            raise

    async def whole() -> None:
        await metered(request(), Bill("a", []))

    task = asyncio.create_task(whole())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert reached.is_set()


def test_one_long_step_costs_more_than_many_short_ones() -> None:
    assert price_of_step(0.03) > 3 * 30 * price_of_step(0.001)


def test_a_single_step_never_has_the_next_request_refused() -> None:
    assert price_of_step(10.0) <= LONGEST_WAIT * SHARE / 4


async def test_large_bodies_of_one_token_are_read_one_after_the_other_and_others_beside_them() -> None:
    read: list[str] = []
    go_on = asyncio.Event()

    async def body(name: str, payer: Meter | None) -> None:
        METER.set(payer)
        async with one_body_at_a_time():
            read.append(name)
            await go_on.wait()

    mine = Bill("token", [])
    readers = [asyncio.create_task(body(f"mine {number}", mine)) for number in range(3)]
    readers += [
        asyncio.create_task(body("another token's", Bill("other", []))),
        asyncio.create_task(body("edge's", None)),
    ]
    for _ in range(10):
        await asyncio.sleep(0)
    assert sorted(read) == ["another token's", "edge's", "mine 0"]
    go_on.set()
    await asyncio.gather(*readers)
    assert [each for each in read if each.startswith("mine")] == ["mine 0", "mine 1", "mine 2"]


async def test_threads_are_charged_and_one_that_stands_still_holds_up_no_other() -> None:
    charges: list[float] = []
    asyncio.get_running_loop().set_default_executor(MeteredThreads())
    held = Event()

    def stand_still() -> None:
        assert held.wait(30)

    METER.set(Bill("token", charges))
    stalled = [asyncio.create_task(asyncio.to_thread(stand_still)) for _ in range(8)]
    await asyncio.to_thread(compute, 0.02)
    assert sum(charges) >= 0.02 * THREAD_PRICE
    held.set()
    await asyncio.gather(*stalled)


async def test_an_error_in_a_metered_thread_reaches_its_request() -> None:
    asyncio.get_running_loop().set_default_executor(MeteredThreads())
    METER.set(Bill("token", []))
    with pytest.raises(ZeroDivisionError):
        await asyncio.to_thread(lambda: 1 // 0)
    assert await asyncio.to_thread(lambda: 1) == 1
