"""The event loop of gateway and worker: uvloop, but on Windows, which has none; its lag, and what spares it."""

import asyncio
import gc
import sys
from collections.abc import Callable

if sys.platform == "win32":
    new_event_loop = asyncio.new_event_loop
else:
    from uvloop import new_event_loop

TICK_SECONDS = 0.05
SWITCH_SECONDS = 0.001
"""After which a thread gives way to the event loop, which waits so long whenever it comes back from the system."""


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


__all__ = ["TICK_SECONDS", "new_event_loop", "prefer_the_loop", "spare_what_is_loaded", "watch_lag"]
