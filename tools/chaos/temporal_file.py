"""Copies of Temporal's SQLite database, and putting an earlier one back."""

import os
import shutil
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from supervised import living

FILE = "temporal.db"
KEPT = 4


class TemporalFile:
    """The file of one home, with its latest copies."""

    def __init__(self, home: Path, copies: Path) -> None:
        self._file = home / FILE
        self._folder = copies
        self._copies: list[Path] = []
        self._number = 0
        copies.mkdir(exist_ok=True)

    @property
    def copies(self) -> list[Path]:
        """Oldest first."""
        return list(self._copies)

    def copy(self) -> bool:
        """Takes a consistent copy from under the running server; False if that cannot be had at this moment."""
        self._number += 1
        target = self._folder / f"copy-{self._number}.db"
        try:
            with (
                closing(sqlite3.connect(f"file:{self._file}?mode=ro", uri=True, timeout=5)) as source,
                closing(sqlite3.connect(target)) as copy,
            ):
                source.backup(copy)
        except sqlite3.Error:
            target.unlink(missing_ok=True)
            return False
        self._copies.append(target)
        while len(self._copies) > KEPT:
            self._copies.pop(0).unlink()
        return True

    def put_back(self, copy: Path, *, supervisor: int, server: int) -> None:
        """Kills the server and puts a copy in place of its file, while its supervisor is held from starting another.

        Args:
            supervisor: process ID of `edgewright up`.
            server: process ID of the Temporal server.
        """
        with _held(supervisor):
            os.kill(server, signal.SIGKILL)
            await_death(server)
            for ending in ("", "-wal", "-shm"):
                self._file.with_name(FILE + ending).unlink(missing_ok=True)
            shutil.copyfile(copy, self._file)


@contextmanager
def _held(process: int) -> Iterator[None]:
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def await_death(process: int) -> None:
    """Returns when a process that was killed is gone."""
    until = time.monotonic() + 20
    while living(process):
        assert time.monotonic() < until, "a killed process has not died"
        time.sleep(0.01)
