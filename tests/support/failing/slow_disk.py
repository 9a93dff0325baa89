"""Makes the disk of a Python process slow, or lets it hang: run at the start of each process of a centre.

In the folder ``SLOW_DISK`` a file ``git`` holds the seconds that each fsync of a repository takes, ``database`` those
of each commit that has written something, ``git-reads`` those of each reading of a branch. What waits goes on at once
when the file goes away.
"""

import os
import pathlib
import sqlite3
import time
from typing import Any

POLL_SECONDS = 0.01
SEEN_SECONDS = 0.5
"""Who has waited for so long leaves a file ``git.waits``, and so on."""


def wait_for(what: str) -> None:
    """Waits as long as the disk takes."""
    switch = f"{os.environ['SLOW_DISK']}/{what}"
    began = time.monotonic()
    while True:
        try:
            descriptor = os.open(switch, os.O_RDONLY)
        except FileNotFoundError:
            return
        seconds = float(os.read(descriptor, 20))
        os.close(descriptor)
        waits = time.monotonic() - began
        if waits >= seconds:
            return
        if waits > SEEN_SECONDS:
            os.close(os.open(f"{switch}.waits", os.O_CREAT))
        time.sleep(POLL_SECONDS)


class SlowConnection(sqlite3.Connection):
    """The end of a transaction that has only read, or is given up, costs no disk anything."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._written = 0

    def commit(self) -> None:
        if self.total_changes != self._written:
            self._written = self.total_changes
            wait_for("database")
        super().commit()

    def rollback(self) -> None:
        super().rollback()
        self._written = self.total_changes  # or the next one on this connection would wait, if only to read


def install() -> None:
    """From here on."""
    fsync, connect, read_text = os.fsync, sqlite3.connect, pathlib.Path.read_text

    def slow_fsync(descriptor: Any) -> None:
        wait_for("git")
        fsync(descriptor)

    def connect_slowly(*arguments: Any, **options: Any) -> sqlite3.Connection:
        return connect(*arguments, factory=SlowConnection, **options)

    def read_slowly(path: pathlib.Path, *arguments: Any, **options: Any) -> str:
        if path.parts[-2:] == ("heads", "main"):
            wait_for("git-reads")
        return read_text(path, *arguments, **options)

    os.fsync = slow_fsync  # type: ignore[assignment]  # whatever it is called with is handed on
    sqlite3.connect = connect_slowly  # type: ignore[assignment]  # one of its overloads is enough here
    pathlib.Path.read_text = read_slowly  # type: ignore[method-assign,assignment]  # the point of it


if __name__ == "__main__" and "SLOW_DISK" in os.environ:
    install()
