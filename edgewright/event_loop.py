"""The event loop of gateway and worker: uvloop, but on Windows, which has none; and how late it is."""

import asyncio
import sys
from collections.abc import Callable

if sys.platform == "win32":
    new_event_loop = asyncio.new_event_loop
else:
    from uvloop import new_event_loop

TICK_SECONDS = 0.05


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


__all__ = ["TICK_SECONDS", "new_event_loop", "watch_lag"]
