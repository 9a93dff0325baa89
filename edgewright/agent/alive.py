"""Says to whoever looks that the program turns: the liveness probe of its pod looks how old a file is.

It says nothing of the centre or of Kubernetes: an agent that waits for either, for weeks if it must, is alive.
"""

import asyncio
from pathlib import Path

from edgewright.agent.transitions import Transitions

ALIVE = Path("/run/edgewright/alive")
"""In a folder that only the pod has: elsewhere nobody looks, and nothing is written."""
TOUCH_SECONDS = 30.0


async def keep_alive(file: Path = ALIVE, seconds: float = TOUCH_SECONDS) -> None:
    """Touches the file again and again until it is cancelled; returns at once if there is no such folder."""
    matter = Transitions("liveness")
    while file.parent.is_dir():
        try:
            touch(file)
            matter.well("told")
        except OSError as trouble:
            matter.trouble("unwritable", detail=f"{file} cannot be written ({type(trouble).__name__}).")
        await asyncio.sleep(seconds)


def touch(file: Path) -> None:
    """Makes it as old as now."""
    file.touch(mode=0o600)
