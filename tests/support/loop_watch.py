"""How much single callbacks do while they hold the event loop, which all clusters of a process wait for.

Calls of functions are counted, not seconds: the same work is the same number on any machine, under any load. What one
call does in C is not seen; which thread did it can be asked with ``thread_of``.
"""

import asyncio
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, ParamSpec, TypeVar

import pytest

from edgewright.held_loop import HeldLoop

P = ParamSpec("P")
T = TypeVar("T")


@dataclass
class BusiestCallback:
    """The callback that did most.

    Args:
        calls: of functions, in Python and in C.
        what: asyncio's words for it.
    """

    calls: int = 0
    what: str = ""
    callbacks: int = 0


@dataclass
class Called:
    """Threads that have called a function."""

    threads: set[int] = field(default_factory=set)

    @property
    def by_this_thread(self) -> bool:
        return threading.get_ident() in self.threads


@contextmanager
def loop_watched() -> Iterator[BusiestCallback]:
    """Looks at every callback of the running loop meanwhile."""
    most, original = BusiestCallback(), asyncio.Handle._run
    loop = asyncio.get_running_loop()

    def counted(handle: asyncio.Handle) -> None:
        if getattr(handle, "_loop", None) is not loop:
            original(handle)
            return
        step = getattr(getattr(handle, "_callback", None), "__self__", None)
        calls = calls_of(lambda: original(handle))
        most.callbacks += 1
        if calls > most.calls:
            most.calls, most.what = calls, repr(step or handle)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio.Handle, "_run", counted)
        yield most


@contextmanager
def held_seconds() -> Iterator[list[float]]:
    """Measures for how long each task that starts meanwhile holds the running loop at a stretch.

    Yields:
        Seconds of processor time, as a worker measures them, so that other programs do not count. Garbage collection
        does not count either: it is off meanwhile, for what it takes depends on the objects that other tests made.
    """
    stretches: list[float] = []

    class Kept(HeldLoop):
        def note(self, seconds: float) -> None:
            stretches.append(seconds)

    loop, collects = asyncio.get_running_loop(), gc.isenabled()
    before = loop.get_task_factory()
    Kept()
    gc.disable()
    try:
        yield stretches
    finally:
        if collects:
            gc.enable()
        loop.set_task_factory(before)


def calls_of(work: Callable[[], object]) -> int:
    """Calls of functions that this thread makes while it does this."""
    calls = 0

    def seen(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


def thread_of(function: Callable[P, T], called: Called) -> Callable[P, T]:
    """The same function, which says what threads call it."""

    def noted(*args: P.args, **kwargs: P.kwargs) -> T:
        called.threads.add(threading.get_ident())
        return function(*args, **kwargs)

    return noted
