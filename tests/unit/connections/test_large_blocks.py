"""An idle TLS connection's buffer takes the page that was written, not a place in the heap."""

import os
import platform
import subprocess
import sys
from pathlib import Path

from free_ports import free_port
from supervised import eventually

from api.connections.large_blocks import keep_large_blocks_apart

IS_GLIBC = platform.libc_ver()[0] == "glibc"
BUFFERS = 20
COUNTS = f"""
import ctypes, sys
from api.connections.large_blocks import keep_large_blocks_apart

class Counts(ctypes.Structure):  # of mallinfo(3)
    _fields_ = [(name, ctypes.c_int) for name in "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks "
                "fordblks keepcost".split()]

library = ctypes.CDLL(None)
library.mallinfo.restype = Counts
library.malloc.restype, library.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
if sys.argv[1] == "apart":
    assert keep_large_blocks_apart()
library.free(library.malloc(256 * 1024))  # the first TLS connection ends
before = library.mallinfo().hblks
buffers = [library.malloc(256 * 1024) for _ in range({BUFFERS})]
print(library.mallinfo().hblks - before)
"""


def mapped_by_themselves(how: str) -> int:
    """How many of the buffers are, once one has been freed."""
    told = subprocess.run([sys.executable, "-P", "-c", COUNTS, how], capture_output=True, text=True, check=True)
    return int(told.stdout)


def test_each_buffer_is_mapped_by_itself_although_others_were_freed() -> None:
    if not IS_GLIBC:
        assert not keep_large_blocks_apart(), "another C library has no such switch"
        return
    assert mapped_by_themselves("apart") == BUFFERS
    assert mapped_by_themselves("as before") == 0, "glibc does this by itself now: the switch can go"


def test_the_gateway_keeps_them_apart(tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("EDGEWRIGHT_")}
    told = {"EDGEWRIGHT_HOME": str(tmp_path), "EDGEWRIGHT_GATEWAY_PORT": str(free_port())}
    told["EDGEWRIGHT_TEMPORAL_ADDRESS"] = f"127.0.0.1:{free_port()}"
    (tmp_path / "sitecustomize.py").write_text(
        "import api.connections.large_blocks as them, sys\n"
        f"them.keep_large_blocks_apart = lambda: (open({str(tmp_path / 'apart')!r}, 'w').close(), sys.exit(7))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "api"],
        env={**kept, **told, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        eventually(lambda: process.poll() is not None)
        assert (tmp_path / "apart").exists()
    finally:
        process.kill()
        process.wait()
