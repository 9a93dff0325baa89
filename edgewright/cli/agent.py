"""`edgewright agent`: the agent of an edge, for a pod there."""

import os
import sys
from typing import NoReturn


def agent() -> NoReturn:
    """Runs the agent of an edge, in a pod there."""
    # In the place of this process: what the command line has loaded would stay in the agent's memory.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "edgewright.agent"])  # noqa: S606 - no shell is wanted
