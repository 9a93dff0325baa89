"""The event streams of one gateway: how many each token has open, and what all of them ask in common."""

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from edgewright.errors import Busy, TooMany

OF_ONE_TOKEN = 16
"""Streams that one token has open, its sessions among them."""
TOGETHER = 256
FRESH_SECONDS = 0.4
"""For so long all streams share one answer: less than the time between two looks of a stream."""

T = TypeVar("T")


class EventStreams:
    """Counts them. Whoever takes a seat leaves it."""

    def __init__(self) -> None:
        self._taken: Counter[str] = Counter()
        self.head: SharedAnswer[int] = SharedAnswer()
        self.grants: SharedAnswer[bool] = SharedAnswer()

    def __len__(self) -> int:
        return self._taken.total()

    @contextmanager
    def seat(self, token: str) -> Iterator[None]:
        """A stream of a token, for as long as it is open.

        Raises:
            TooMany: code ``event_streams_busy``: the token has enough.
            Busy: the same code: there are too many of all tokens together.
        """
        if self._taken[token] >= OF_ONE_TOKEN:
            raise TooMany(
                f"This token has {OF_ONE_TOKEN} event streams open already.",
                code="event_streams_busy",
                retry_after=5.0,
                hint="Close some, or follow all clusters on one stream.",
            )
        if self._taken.total() >= TOGETHER:
            raise Busy("Too many event streams are open.", code="event_streams_busy", retry_after=5.0)
        self._taken[token] += 1
        try:
            yield
        finally:
            self._taken[token] -= 1
            if not self._taken[token]:
                del self._taken[token]


class SharedAnswer(Generic[T]):
    """What many ask at about the same time, asked once.

    Args:
        clock: monotonic, in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[Hashable, tuple[float, T]] = {}

    async def of(self, key: Hashable, ask: Callable[[], Awaitable[T]]) -> T:
        """The answer for a key, at most ``FRESH_SECONDS`` old."""
        now = self._clock()
        known = self._known.get(key)
        if known is not None and now - known[0] < FRESH_SECONDS:
            return known[1]
        answer = await ask()
        self._known = {each: held for each, held in self._known.items() if now - held[0] < FRESH_SECONDS}
        self._known[key] = (now, answer)
        return answer
