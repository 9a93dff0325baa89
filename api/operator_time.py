"""How much of a gateway's time each operator token may take.

A request is charged with the processor time that the event loop and its threads spend on it, measured as they do. A
token that has spent its allowance waits, and only that token: its next request begins when enough has come back.
Edges have no such allowance; what they send is bounded in other ways (``api.allowances``).
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from types import coroutine
from typing import Any, ParamSpec, TypeVar

from edgewright.errors import TooMany

SHARE = 0.5
"""Seconds that a token may spend each second: the other half is for others."""
BURST_SECONDS = 0.05
"""Seconds that it may spend at once after a rest; more would leave nothing to others for a moment."""
LONG_STEP = 0.005
"""Seconds. A step that holds the loop for so long counts twice, one of twice that three times: what everybody else
waits grows with the square of it."""
DEAREST_STEP = 0.25
"""Seconds that no step costs more than: what is loaded at first use, or collected, is nobody's fault."""
THREAD_PRICE = 2.0
"""Price of a second in a thread: nobody knows for how long at a time it keeps Python's lock."""
LEAST_CHARGE = 0.001
"""Seconds that the smallest request counts as: what comes before and after its handler is not measured."""
FIRST_DEPOSIT = 0.005
LARGEST_DEPOSIT = 0.5
"""Seconds that a request pays before it begins; what it turns out not to cost comes back at its end."""
NEWEST_COUNTS = 0.2
"""How much the newest request of a token counts in what its next one pays."""
LONGEST_WAIT = 4.0
"""Seconds for which a request waits before it is refused; common clients give up after five."""
SHORTEST_PAUSE = 0.001
WAITING = 128
"""Requests of one token that wait at once."""
THREADS = 32
"""Most of them wait for a disk: what one repository keeps waiting leaves threads for the others."""
REMEMBERED = 10_000
"""Tokens remembered at once. Whoever is forgotten has all of the allowance again."""

T = TypeVar("T")
P = ParamSpec("P")
Clock = Callable[[], float]


class Bucket:
    """A token bucket that may be overdrawn: the price of a request is known only afterwards."""

    def __init__(self, burst: float, per_second: float, now: float) -> None:
        self._burst = burst
        self._per_second = per_second
        self._left = burst
        self._at = now

    def take(self, amount: float, now: float) -> None:
        self._left = min(self._burst, self._left + (now - self._at) * self._per_second) - amount
        self._at = now

    def seconds_until_paid(self, now: float) -> float:
        """0 or less: nothing is owed."""
        return -self._left / self._per_second - (now - self._at)


@dataclass
class TokenAccount:
    """What one token may still spend, and which of its requests wait.

    Args:
        allowance: seconds that it may spend.
        turn: whose wait is next.
        waiting: how many wait, the one whose turn it is among them.
        reading: who reads a large body.
        spent: seconds that ended requests have cost, since it is remembered.
        usual: seconds that one of its requests costs.
    """

    allowance: Bucket
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0
    spent: float = 0.0
    usual: float = FIRST_DEPOSIT
    _lock: Lock = field(default_factory=Lock)

    def charge(self, seconds: float, now: float) -> None:
        """From any thread; what is less than nothing is given back."""
        with self._lock:
            self.allowance.take(seconds, now)

    def learn(self, cost: float) -> None:
        """One request is over, and has cost so many seconds."""
        with self._lock:
            self.spent += cost
            self.usual += NEWEST_COUNTS * (cost - self.usual)

    def seconds_until_paid(self, now: float) -> float:
        return self.allowance.seconds_until_paid(now)


class Meter:
    """Charges one account for one request.

    What a request costs is known only as it goes on: without a deposit, dozens of them would begin before the first
    one has cost anything.
    """

    def __init__(self, account: TokenAccount, clock: Clock) -> None:
        self.account = account
        self.clock = clock
        self._lock = Lock()
        self._cost = 0.0
        self._deposit = min(account.usual, LARGEST_DEPOSIT)
        account.charge(self._deposit, clock())
        self.charge(LEAST_CHARGE)

    def charge(self, seconds: float) -> None:
        """From any thread."""
        with self._lock:
            self._cost += seconds
            paid = min(seconds, self._deposit)
            self._deposit -= paid
        self.account.charge(seconds - paid, self.clock())

    def end(self) -> None:
        """The request is over: what is left of its deposit is given back."""
        with self._lock:
            left, self._deposit = self._deposit, 0.0
        self.account.charge(-left, self.clock())
        self.account.learn(self._cost)


METER: ContextVar[Meter | None] = ContextVar("operator_meter", default=None)
"""Whom the work of the present request is charged to; None: nobody."""


class OperatorTime:
    """The accounts of one process.

    Args:
        clock: monotonic, in seconds.
        sleep: as ``asyncio.sleep``.
    """

    def __init__(
        self, *, clock: Clock = time.monotonic, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        self._clock = clock
        self._sleep = sleep
        self._accounts: OrderedDict[bytes | str, TokenAccount] = OrderedDict()
        self._roots: OrderedDict[bytes, str] = OrderedDict()

    def __len__(self) -> int:
        """Accounts that are remembered."""
        return len(self._accounts)

    def known(self, secret: str) -> str | None:
        """The token that pays for a secret; None: the secret has never been right here."""
        return self._roots.get(_digest(secret))

    def learn(self, secret: str, token: str) -> None:
        """A secret has turned out to be a token's, or that of a session which a token has opened."""
        self._roots[_digest(secret)] = token
        self._roots.move_to_end(_digest(secret))
        if len(self._roots) > REMEMBERED:
            self._roots.popitem(last=False)

    async def turn(self, secret: str) -> Meter:
        """Waits until its token owes nothing; returns what the request is charged with.

        Raises:
            TooMany: code ``too_many_requests``: that would take too long, or too many wait already.
        """
        payer = self.known(secret) or _digest(secret)
        account = self._account(payer)
        due = self._clock() + LONGEST_WAIT
        if account.waiting >= WAITING:
            raise self._refused(account)
        account.waiting += 1
        try:
            async with account.turn:
                while (owed := account.seconds_until_paid(self._clock())) > 0:
                    if self._clock() + owed > due:
                        await self._sleep(max(0.0, due - self._clock()))
                        raise self._refused(account)
                    await self._sleep(max(owed, SHORTEST_PAUSE))
                return Meter(account, self._clock)
        finally:
            account.waiting -= 1

    def _account(self, payer: bytes | str) -> TokenAccount:
        account = self._accounts.get(payer)
        if account is None:
            now = self._clock()
            account = TokenAccount(Bucket(BURST_SECONDS, SHARE, now))
            self._accounts[payer] = account
            if len(self._accounts) > REMEMBERED:
                self._accounts.popitem(last=False)
        self._accounts.move_to_end(payer)
        return account

    def _refused(self, account: TokenAccount) -> TooMany:
        return TooMany(
            "This token takes more of the gateway's time than one token may.",
            code="too_many_requests",
            retry_after=max(1.0, account.seconds_until_paid(self._clock())),
            hint="Send fewer requests at once, and wait as long as Retry-After says.",
        )


def price_of_step(seconds: float) -> float:
    """What a step of the event loop costs that took so long."""
    return min(seconds * (1 + seconds / LONG_STEP), DEAREST_STEP)


@coroutine
def metered(work: Coroutine[Any, Any, T], meter: Meter) -> Generator[Any, Any, T]:
    """Runs a coroutine, and charges the processor time of each of its steps as soon as that has ended."""
    sent: Any = None
    thrown: BaseException | None = None
    while True:
        began = time.thread_time()
        try:
            awaited = work.send(sent) if thrown is None else work.throw(thrown)
        except StopIteration as returned:
            result: T = returned.value
            return result
        finally:
            meter.charge(price_of_step(time.thread_time() - began))
        sent = thrown = None
        try:
            sent = yield awaited
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is for the coroutine
            thrown = error


class MeteredThreads(ThreadPoolExecutor):
    """Threads for what would hold the event loop; their processor time is charged as that of the loop is."""

    def __init__(self) -> None:
        super().__init__(THREADS, thread_name_prefix="gateway")

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        meter = METER.get()
        if meter is None:
            return super().submit(fn, *args, **kwargs)

        def charged() -> T:
            began = time.thread_time()
            try:
                return fn(*args, **kwargs)
            finally:
                meter.charge((time.thread_time() - began) * THREAD_PRICE)

        return super().submit(charged)


@asynccontextmanager
async def one_body_at_a_time() -> AsyncIterator[None]:
    """For reading a large body: those of one token come one after the other.

    Otherwise a token that sends a few at once would have most of Python's lock. Nothing else of a token has to queue:
    no transaction waits until a disk that stalls goes on.
    """
    meter = METER.get()
    if meter is None:
        yield
        return
    async with meter.account.reading:
        yield


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()
