"""Whether anything was written to a SQLite file since one looked last; costs some microseconds and no transaction."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlalchemy.engine import make_url

Stamp = Callable[[], int | None]
"""A number that another commit changes, whoever makes it; None: unknown at the moment."""


@contextmanager
def change_stamp(url: str) -> Iterator[Stamp | None]:
    """The stamp of a database that is there; None for one that has none: PostgreSQL."""
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite" or not parsed.database:
        yield None
        return
    # Never in the way of anybody: it waits for no lock, and holds none.
    connection = sqlite3.connect(parsed.database, timeout=0, isolation_level=None, check_same_thread=False)

    def read() -> int | None:
        try:
            (version,) = connection.execute("PRAGMA data_version").fetchone()
        except sqlite3.Error:
            return None
        return int(version)

    try:
        yield read
    finally:
        connection.close()
