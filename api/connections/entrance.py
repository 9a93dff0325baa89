"""In which order new connections begin: those of one source after one another, those of different sources not.

An event loop takes as many connections at once as have arrived, and reads from all of them in its next round. Without
this, hundreds that one caller opens would be parsed, refused or answered before an edge's next heartbeat is read.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

AT_ONCE = 16
EVERY = 0.002
REMEMBERED = 10_000
"""Sources remembered at once. Whoever is forgotten does not wait next time."""

Begin = Callable[[], bool]
"""Begins a connection; returns whether it was still there."""


@dataclass
class _Queue:
    """The connections of one source that wait to begin.

    Args:
        paid_until: when all that have begun would have begun one by one; seconds of the event loop.
    """

    paid_until: float
    waiting: deque[Begin] = field(default_factory=deque)


class Entrance:
    """Orders the connections of one listening port. A source has no more of them waiting than it has places.

    Args:
        at_once: connections of a source that begin without waiting, after a rest.
        every: seconds after which the next one begins.
    """

    def __init__(self, *, at_once: int = AT_ONCE, every: float = EVERY) -> None:
        self._every = every
        self._ahead = (at_once - 0.5) * every  # half a step away from what rounding could decide
        self._queues: OrderedDict[str, _Queue] = OrderedDict()

    def __len__(self) -> int:
        """Sources that are remembered."""
        return len(self._queues)

    def enter(self, loop: asyncio.AbstractEventLoop, source: str | None, begin: Begin) -> None:
        """Calls ``begin`` when it is this connection's turn, at once if nobody of its source has to wait.

        Args:
            source: None: a proxy, which speaks for many.
        """
        if source is None:
            begin()
            return
        queue = self._queue(source, loop.time())
        queue.waiting.append(begin)
        if len(queue.waiting) == 1:
            self._go_on(loop, queue)

    def _queue(self, source: str, now: float) -> _Queue:
        queue = self._queues.setdefault(source, _Queue(now))
        self._queues.move_to_end(source)
        if len(self._queues) > REMEMBERED:
            self._queues.popitem(last=False)  # whoever waits there still gets their turn
        return queue

    def _go_on(self, loop: asyncio.AbstractEventLoop, queue: _Queue) -> None:
        while queue.waiting:
            now = loop.time()
            queue.paid_until = max(queue.paid_until, now)
            early = queue.paid_until - now - self._ahead
            if early > 0:
                loop.call_later(early, self._go_on, loop, queue)
                return
            if queue.waiting[0]():
                queue.paid_until += self._every
            queue.waiting.popleft()
