"""Long times for an edge and its centre, of which each counts its own; the machine's clock cannot be moved.

In the agent, the count of seconds runs ahead, with all its pauses; at the centre, what its database knows of the edge
becomes older.
"""

import sys
from datetime import timedelta
from pathlib import Path

from embedded import EmbeddedEdgewright
from moved_back import move_back

from tools.long_life.shared_clock import SharedClock

HEARD = {"clusters": ("last_heard", "lease_expires_at"), "gateway_presence": ("listening_since",)}
"""When the edge was heard, and since when somebody has listened."""
AHEAD = """
import sys, time
from pathlib import Path
from edgewright.agent import __main__ as agent
from edgewright.agent.lifetime import main_of
from edgewright.agent.timing import RealClock

passed, wait = Path(sys.argv[1]), RealClock.sleep

def monotonic(self):
    return time.monotonic() + (float(passed.read_text()) if passed.exists() else 0.0)

async def sleep(self, seconds, *, until=None):
    end = self.monotonic() + seconds
    while (left := end - self.monotonic()) > 0 and not (until and until.is_set()):
        await wait(self, min(left, 0.2), until=until)

RealClock.monotonic, RealClock.sleep = monotonic, sleep
sys.exit(main_of(agent.run))
"""
"""The agent, ahead by the seconds that stand in a file."""


class LongTime:
    """Lets time pass for one edge.

    Args:
        folder: for a file that tells the agent how far ahead it is.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "passed"
        self._clock = SharedClock(self._file)

    @property
    def agent(self) -> list[str | Path]:
        """The program of the agent for which it passes."""
        return [sys.executable, "-P", "-c", AHEAD, self._file]

    def passes(self, time: timedelta) -> None:
        """For the agent."""
        self._clock.move_on(time.total_seconds())

    def passes_without_a_word(self, time: timedelta, centre: EmbeddedEdgewright) -> None:
        """For both; all the time the centre listens, and does not hear the edge."""
        move_back(centre, HEARD, time)
        self.passes(time)
