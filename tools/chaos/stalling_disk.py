"""A disk that stalls: what is written to repositories or to the database takes seconds to be there."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from random import Random

from failing import slow_disk

from tools.chaos.journal import Journal

KINDS = {"stall": 2}
WHAT = ("git", "database")
STALLED_SECONDS = (2.0, 12.0)


class StallingDisk:
    """Stalls the disk of all processes of one centre.

    Args:
        folder: gets what makes them notice; there is nothing yet.
    """

    def __init__(self, folder: Path) -> None:
        self._startup, self._switches = folder / "startup", folder / "switches"

    def variables(self) -> dict[str, str]:
        """What its processes have to be started with."""
        for folder in (self._startup, self._switches):
            folder.mkdir(parents=True)
        startup = f"import runpy\nrunpy.run_path({slow_disk.__file__!r}, run_name='__main__')\n"
        (self._startup / "sitecustomize.py").write_text(startup)
        path = os.pathsep.join(filter(None, [str(self._startup), os.environ.get("PYTHONPATH", "")]))
        return {"SLOW_DISK": str(self._switches), "PYTHONPATH": path}

    async def stall(self, journal: Journal, random: Random, *, what: Sequence[str] = WHAT) -> bool:
        """Returns when it works again. False: nobody has waited for it."""
        chosen, seconds = random.choice(what), random.uniform(*STALLED_SECONDS)
        journal.killed("stall", [chosen])
        switch, seen = self._switches / chosen, self._switches / f"{chosen}.waits"
        seen.unlink(missing_ok=True)
        draft = self._switches / f"{chosen}.draft"
        draft.write_text(str(seconds))
        draft.rename(switch)
        try:
            await asyncio.sleep(seconds)
        finally:
            switch.unlink()
        return seen.exists()
