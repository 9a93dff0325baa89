"""Copies of Temporal's two databases on PostgreSQL, and putting an earlier pair back."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from postgresql_server import PostgreSQL

from tools.chaos.temporal_file import await_death

DATABASES = ("temporal", "temporal_visibility")
KEPT = 3


class TemporalDatabases:
    """Those of one server, with their latest copies. The server has to run, and nobody may kill it meanwhile."""

    def __init__(self, postgresql: PostgreSQL) -> None:
        self._postgresql = postgresql
        self._number = 0
        self.copies: list[str] = []
        """What the names of a pair end with, oldest first."""

    def copy(self) -> None:
        """Copies both at the same state; Temporal takes it for a short outage of its database."""
        self._number += 1
        ending = f"_copy_{self._number}"
        with self._shut():
            for name in DATABASES:
                self._postgresql.copy_database(name, name + ending)
        self.copies.append(ending)
        while len(self.copies) > KEPT:
            gone = self.copies.pop(0)
            for name in DATABASES:
                self._postgresql.drop_database(name + gone)

    def put_back(self, ending: str, *, server: int) -> None:
        """Kills Temporal's server and puts copies in the place of both, while no other server gets into them.

        Args:
            server: its process ID.
        """
        with self._shut():
            with suppress(ProcessLookupError):
                os.kill(server, signal.SIGKILL)
            await_death(server)
            for name in DATABASES:
                self._postgresql.drop_database(name)
                self._postgresql.copy_database(name + ending, name)

    @contextmanager
    def _shut(self) -> Iterator[None]:
        """Whoever is in the databases is thrown out, and nobody gets in."""
        try:
            for name in DATABASES:
                self._let_in(name, anybody=False)
                thrown_out = f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = '{name}'"
                self._postgresql.sql(thrown_out)
            yield
        finally:
            for name in DATABASES:
                self._let_in(name, anybody=True)

    def _let_in(self, name: str, *, anybody: bool) -> None:
        self._postgresql.sql(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS {anybody}')
