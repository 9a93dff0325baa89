"""The event loop of gateway and worker: uvloop, but on Windows, which has none; its lag, and what spares it."""

import asyncio
import gc
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

if sys.platform == "win32":
    new_event_loop = asyncio.new_event_loop
else:
    from uvloop import new_event_loop

TICK_SECONDS = 0.05
SWITCH_SECONDS = 0.001
"""After which a thread gives way to the event loop, which waits so long whenever it comes back from the system."""
SHARE = 0.01
"""The part of the time that looking through all objects for garbage may take."""
LEAST_PAUSE, LONGEST_PAUSE = 10.0, 120.0
_NEVER = 1_000_000
"""Times that the younger objects are looked through before the oldest are, too."""


async def watch_lag(observe: Callable[[float], None]) -> None:
    """Tells, twenty times a second and until it is cancelled, how late the running loop is.

    Args:
        observe: is given seconds. Whatever holds the loop for longer than a tick shows: a callback that computes, or
            a thread that keeps Python's lock.
    """
    now = asyncio.get_running_loop().time
    while True:
        due = now() + TICK_SECONDS
        await asyncio.sleep(TICK_SECONDS)
        observe(max(0.0, now() - due))


def prefer_the_loop() -> None:
    """Lets other threads of this process, which read YAML or seal a thousand values, give way to the loop soon."""
    sys.setswitchinterval(SWITCH_SECONDS)


def spare_what_is_loaded() -> None:
    """Takes all that the program has loaded so far out of what Python's garbage collector looks through.

    Modules and classes stay until the end; looking through them takes 60 ms of everybody's time, again and again.
    """
    gc.collect()
    gc.freeze()


@asynccontextmanager
async def collecting_seldom(*, least: float = LEAST_PAUSE, longest: float = LONGEST_PAUSE) -> AsyncIterator[None]:
    """Meanwhile, this process looks through all its objects for garbage so seldom that it takes 1% of the time.

    Python itself does so whenever a quarter more of them have come. With ten thousand heartbeats that wait, that was
    every few seconds, and took one to two seconds in which nobody was answered.

    Args:
        least, longest: seconds between one look and the next.
    """
    young, old, oldest = gc.get_threshold()
    gc.set_threshold(young, old, _NEVER)
    looking = asyncio.create_task(_look_for_garbage(least, longest))
    try:
        yield
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
        gc.set_threshold(young, old, oldest)


async def _look_for_garbage(least: float, longest: float) -> None:
    pause = least
    while True:
        await asyncio.sleep(pause)
        begun = time.perf_counter()
        gc.collect()
        pause = min(max(least, (time.perf_counter() - begun) / SHARE), longest)


__all__ = [
    "TICK_SECONDS",
    "collecting_seldom",
    "new_event_loop",
    "prefer_the_loop",
    "spare_what_is_loaded",
    "watch_lag",
]
