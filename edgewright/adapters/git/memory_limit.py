"""Git under a memory limit: a delta of a few kilobytes can claim gigabytes, and git believes it."""

import resource
from contextlib import suppress

MIB = 1024 * 1024
FETCH_MEMORY = 1024 * MIB
PUSH_MEMORY = 256 * MIB
"""Bytes that one git process may allocate."""
READ_MEMORY = 512 * MIB
"""The same for one that serves the centre's own reads: no file in a repository comes to more than a fraction."""
UPKEEP_MEMORY = 1024 * MIB
"""The same for one that repacks, or writes or reads a bundle."""


def bound_memory(process: int, limit: int) -> None:
    """Bounds what a process that is running may allocate; what it starts later inherits that.

    Files that it maps, such as packs, do not count. Only Linux bounds a process that runs already.
    """
    if hasattr(resource, "prlimit"):
        with suppress(ProcessLookupError):
            resource.prlimit(process, resource.RLIMIT_DATA, (limit, limit))


def ran_out_of_memory(said: bytes) -> bool:
    """Whether git says that it got no memory."""
    return b"out of memory" in said.lower()
