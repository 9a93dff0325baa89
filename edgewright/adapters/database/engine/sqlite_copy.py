"""A whole copy of a SQLite database, taken while others write to it."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from edgewright.adapters.database.engine.engine import LOCK_WAIT_SECONDS
from edgewright.adapters.database.engine.errors import translate


def copy_sqlite(source: Path, target: Path) -> None:
    """Writes one committed state of ``source`` to the new file ``target``; writers are not held up.

    Raises:
        edgewright.errors.Stalled: code ``database_damaged``.
        edgewright.errors.Waiting: codes ``database_unavailable``, ``disk_full``.
    """
    descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    os.close(descriptor)
    with _translated(source), closing(_opened(source, "ro")) as whole, closing(_opened(target, "rw")) as copy:
        # In one go, under one reader's view: page by page it would begin anew with each commit of another process.
        whole.backup(copy, pages=-1)
        copy.execute("PRAGMA journal_mode = DELETE")  # the copy is one file


def check_sqlite(file: Path) -> None:
    """Returns if every page of a database is whole.

    Raises:
        edgewright.errors.Stalled: code ``database_damaged``.
    """
    with _translated(file), closing(_opened(file, "ro")) as database:
        [verdict] = next(database.execute("PRAGMA quick_check(1)"))
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)


@contextmanager
def _translated(file: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        if not hasattr(error, "sqlite_errorname"):  # made by us, or by the module itself, from what it has read
            error.sqlite_errorname = "SQLITE_CORRUPT"
        meaning = translate(error, str(file))
        if meaning is None:
            raise
        raise meaning from error


def _opened(file: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(file.absolute()))}?mode={mode}", uri=True, timeout=LOCK_WAIT_SECONDS)
