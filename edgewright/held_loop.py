"""How long single tasks hold the event loop that everybody else in the process waits for.

Processor time of the loop's thread, not wall time: a machine under load makes nobody guilty. ``watch_lag`` tells how
late the loop is, for whatever reason. What Python's garbage collector takes meanwhile is no task's doing, and grows
with all that lives in the process: it is left out here, and shows there.
"""

import asyncio
import gc
import time
from collections.abc import Callable, Coroutine, Generator
from threading import get_ident
from types import TracebackType
from typing import Any, TypeVar

from edgewright.event_loop import TICK_SECONDS

T = TypeVar("T")


class HeldLoop:
    """Times each uninterrupted stretch of every task that the running loop begins from now on."""

    def __init__(self) -> None:
        self._longest = 0.0
        self._collecting: float | None = None
        self._collected = 0.0
        self._thread = get_ident()
        asyncio.get_running_loop().set_task_factory(self._begin)

    async def watch(self, observe: Callable[[float], None]) -> None:
        """Tells, twenty times a second and until it is cancelled, what the longest stretch since the last time took.

        Args:
            observe: is given seconds of processor time.
        """
        gc.callbacks.append(self._collects)
        try:
            while True:
                await asyncio.sleep(TICK_SECONDS)
                longest, self._longest = self._longest, 0.0
                observe(longest)
        finally:
            gc.callbacks.remove(self._collects)

    def note(self, seconds: float) -> None:
        """One stretch has ended."""
        self._longest = max(self._longest, seconds)

    def _collects(self, phase: str, _: dict[str, int]) -> None:
        """The garbage collector begins, or has ended, in whatever thread had it begin."""
        if get_ident() != self._thread:
            return
        if phase == "start":
            self._collecting = time.thread_time()
        elif self._collecting is not None:
            self._collected += time.thread_time() - self._collecting
            self._collecting = None

    def _clock(self) -> float:
        """Processor seconds of the loop's thread, but for those of the garbage collector."""
        return time.thread_time() - self._collected

    def _begin(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, T] | Generator[Any, None, T],
        **options: Any,
    ) -> "asyncio.Task[T]":
        if isinstance(coroutine, Coroutine):
            coroutine = _Timed(coroutine, self._clock, self.note)
        return asyncio.Task(coroutine, loop=loop, **options)


class _Timed(Coroutine[Any, Any, T]):
    """A coroutine, and how long it runs each time before it waits again."""

    def __init__(
        self, coroutine: Coroutine[Any, Any, T], clock: Callable[[], float], note: Callable[[float], None]
    ) -> None:
        self._coroutine = coroutine
        self._clock = clock
        self._note = note

    def send(self, value: Any) -> Any:
        began = self._clock()
        try:
            return self._coroutine.send(value)
        finally:
            self._note(self._clock() - began)

    def throw(
        self,
        kind: type[BaseException] | BaseException,
        error: BaseException | object = None,
        trace: TracebackType | None = None,
    ) -> Any:
        began = self._clock()
        try:
            if isinstance(kind, BaseException):
                return self._coroutine.throw(kind)
            return self._coroutine.throw(kind, error, trace)
        finally:
            self._note(self._clock() - began)

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, T]:
        return self._coroutine.__await__()

    def __getattr__(self, name: str) -> Any:
        """Its name and its frame, for whoever describes the task."""
        return getattr(self._coroutine, name)
