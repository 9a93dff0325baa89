"""Lets one gateway serve from a SQLite file, and no second one beside it.

What two gateways would share goes through the file, too, so nothing would be lost. But SQLite has one writer at a
time and no fair queue between processes: under load the second gateway would keep edges and people waiting for
seconds, now and then. PostgreSQL is there for several.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from edgewright.adapters.database.engine.engine import sqlite_file
from edgewright.adapters.database.engine.errors import translate
from edgewright.adapters.file_lock import take
from edgewright.errors import Stalled

HANDOVER_SECONDS = 3.0
"""How long a gateway waits for the one before it, which may be ending."""


@contextmanager
def sole_gateway(database_url: str) -> Iterator[bool]:
    """Holds ``<file>.gateway`` beside the SQLite file; the kernel drops the lock with the process, however it dies.

    Yields:
        Whether no other gateway can be serving from this database.

    Args:
        database_url: one that ``open_database`` takes; of another database than SQLite nothing is held.

    Raises:
        Stalled: code ``second_gateway``.
        Waiting: code ``database_unavailable``: the folder of the file cannot be written.
    """
    file = sqlite_file(database_url)
    if file is None:
        yield False
        return
    try:
        descriptor = os.open(f"{file}.gateway", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise translate(error, str(file)) or error from error
    try:
        _take(descriptor, file)
        with suppress(OSError):  # on a full disk the lock holds all the same
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield True
    finally:
        os.close(descriptor)


def _take(descriptor: int, file: Path) -> None:
    if take(descriptor, patience=HANDOVER_SECONDS):
        return
    holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
    raise Stalled(
        f"Another gateway (process {holder or 'unknown'}) serves from {file}, and SQLite is for one only.",
        code="second_gateway",
        hint="Several gateways need PostgreSQL: set EDGEWRIGHT_DATABASE_URL.",
    )
