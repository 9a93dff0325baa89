"""No core dumps: the memory of gateway, worker and agent holds secrets in clear, and a dump is a file that stays."""

import ctypes
import sys
from contextlib import suppress

if sys.platform != "win32":
    import resource

_PR_SET_DUMPABLE = 4


def forbid_core_dumps() -> None:
    """From now on the kernel writes no image of this process, and other processes of the same user cannot read it.

    Where there is no such switch, as on macOS, the limit of the size has to do.
    """
    if sys.platform == "win32":
        return
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        # A pipe in core_pattern gets a dump of any size: only this keeps it from being made.
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
