"""Ports for servers of tests: nobody else gets the same one, neither a test beside nor a client by the kernel."""

import os
import random
import socket
import tempfile
from pathlib import Path

from filelock import FileLock, Timeout

_CLAIMED: list[FileLock] = []
"""Held until this process ends, so that a test that runs beside takes other ports."""


def free_port() -> int:
    """One below those that the kernel gives to clients: Temporal keeps its own in columns that end at 32767."""
    claims = Path(tempfile.gettempdir()) / f"edgewright-ports-{os.getuid()}"
    claims.mkdir(mode=0o700, exist_ok=True)
    while True:
        port = random.randrange(20000, 32000)
        claim = FileLock(claims / str(port))
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                continue
        try:
            claim.acquire(timeout=0)
        except Timeout:
            continue
        _CLAIMED.append(claim)
        return port
