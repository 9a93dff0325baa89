"""Where the C library puts large blocks of memory: beside its heap, so that each takes the pages that are written.

uvloop has a buffer of 256 kB for each TLS connection, of which an idle one has written the first page, and Python's
``ssl`` asks for as much again for every read. glibc maps blocks from 128 kB on by themselves, until the first of them
is freed; then it puts those of that size into its heap, too. What lives as long as a connection then lies between
them, spread over many pages: 20 kB more for each (``docs/performance.md``).
"""

import ctypes
import sys

LARGE_BYTES = 128 * 1024
"""glibc's own threshold at the start of a process."""
_M_MMAP_THRESHOLD = -3
"""A parameter of ``mallopt(3)``; whoever sets it keeps glibc from raising it."""


def keep_large_blocks_apart() -> bool:
    """From now on each block of ``LARGE_BYTES`` and more is mapped by itself, whatever was freed before.

    Returns whether the C library can be told: glibc can; musl, macOS and Windows have other ways and no such switch.
    """
    if sys.platform != "linux":
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES))
