"""How long single tasks hold the event loop that everybody else in the process waits for.

Processor time of the loop's thread, not wall time: a machine under load makes nobody guilty. ``watch_lag`` tells how
late the loop is, for whatever reason.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, TypeVar

from edgewright.event_loop import TICK_SECONDS

T = TypeVar("T")


class HeldLoop:
    """Times each uninterrupted stretch of every task that the running loop begins from now on."""

    def __init__(self) -> None:
        self._longest = 0.0
        asyncio.get_running_loop().set_task_factory(self._begin)

    async def watch(self, observe: Callable[[float], None]) -> None:
        """Tells, twenty times a second and until it is cancelled, what the longest stretch since the last time took.

        Args:
            observe: is given seconds of processor time.
        """
        while True:
            await asyncio.sleep(TICK_SECONDS)
            longest, self._longest = self._longest, 0.0
            observe(longest)

    def note(self, seconds: float) -> None:
        """One stretch has ended."""
        self._longest = max(self._longest, seconds)

    def _begin(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, T] | Generator[Any, None, T],
        **options: Any,
    ) -> "asyncio.Task[T]":
        if isinstance(coroutine, Coroutine):
            coroutine = _Timed(coroutine, self.note)
        return asyncio.Task(coroutine, loop=loop, **options)


class _Timed(Coroutine[Any, Any, T]):
    """A coroutine, and how long it runs each time before it waits again."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], note: Callable[[float], None]) -> None:
        self._coroutine = coroutine
        self._note = note

    def send(self, value: Any) -> Any:
        began = time.thread_time()
        try:
            return self._coroutine.send(value)
        finally:
            self._note(time.thread_time() - began)

    def throw(
        self,
        kind: type[BaseException] | BaseException,
        error: BaseException | object = None,
        trace: TracebackType | None = None,
    ) -> Any:
        began = time.thread_time()
        try:
            if isinstance(kind, BaseException):
                return self._coroutine.throw(kind)
            return self._coroutine.throw(kind, error, trace)
        finally:
            self._note(time.thread_time() - began)

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, T]:
        return self._coroutine.__await__()

    def __getattr__(self, name: str) -> Any:
        """Its name and its frame, for whoever describes the task."""
        return getattr(self._coroutine, name)
