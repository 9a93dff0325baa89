"""How long single callbacks hold the event loop, which all clusters of a process wait for.

Processor time of the loop's thread, not wall time: a machine under load makes nobody guilty.
"""

import asyncio
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from edgewright.event_loop import spare_what_is_loaded


@dataclass
class Held:
    """The callback that took most.

    Args:
        seconds: of processor time.
        what: asyncio's words for it.
    """

    seconds: float = 0.0
    what: str = ""
    callbacks: int = 0


@contextmanager
def loop_watched() -> Iterator[Held]:
    """Looks at every callback of the running loop meanwhile; the collector spares what is there, as in the worker."""
    most, original = Held(), asyncio.Handle._run
    loop = asyncio.get_running_loop()

    def timed(handle: asyncio.Handle) -> None:
        if getattr(handle, "_loop", None) is not loop:
            original(handle)
            return
        began, step = time.thread_time(), getattr(handle._callback, "__self__", None)
        original(handle)
        seconds = time.thread_time() - began
        most.callbacks += 1
        if seconds > most.seconds:
            most.seconds, most.what = seconds, repr(step or handle)

    spare_what_is_loaded()
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncio.Handle, "_run", timed)
            yield most
    finally:
        gc.unfreeze()
