"""The event loop of gateway and worker: uvloop, but on Windows, which has none."""

import asyncio
import sys

if sys.platform == "win32":
    new_event_loop = asyncio.new_event_loop
else:
    from uvloop import new_event_loop

__all__ = ["new_event_loop"]
