"""SQLite: how a connection is opened, how its transactions begin and end, and whether anything was written since."""

import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

from sqlalchemy import NullPool, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from edgewright.adapters.database.engine.direct_connection import Answered, DirectConnection, TransactionKind
from edgewright.adapters.database.engine.sqlite_connection import LoopConnection

T = TypeVar("T")
Stamp = Callable[[], int | None]
"""A number that another commit changes, whoever makes it; None: unknown at the moment."""


class SqliteConnection(DirectConnection):
    """One connection to a file."""

    _has_begun = False

    async def begins(self, kind: TransactionKind) -> None:
        self.driver.begins(patience=kind.patience, in_thread=kind.long and not kind.writes, writes=kind.writes)
        self._has_begun = not kind.lone
        if self._has_begun:
            # A reader that became a writer would be refused when another process has written since; writers say so
            # first.
            text = "BEGIN IMMEDIATE" if kind.writes else "BEGIN"
            await _told(text, self.driver.ask(text))

    async def ends(self, *, commit: bool) -> None:
        if not self._has_begun:
            return
        if commit:
            await _told("COMMIT", self.driver.commit())
        else:
            await _told("ROLLBACK", self.driver.rollback())

    def gives_up(self) -> None:
        """Closing waits for nothing but a call that is under way in a thread, which has to end first."""

    async def ask(self, text: str, values: Sequence[Any], *, returns_rows: bool) -> Answered:
        rows, changed = await _told(text, self.driver.ask(text, values))
        return Answered(rows, changed)

    async def ask_many(self, text: str, values: Sequence[Sequence[Any]]) -> Answered:
        return Answered((), await _told(text, self.driver.ask_many(text, values)))

    async def keep_a_write_ahead_log(self, patience: float) -> None:
        """Turns the log on; the file remembers it. Two processes that do so at once get "locked" at once."""
        self.driver.begins(patience=patience)
        try:
            await self.driver.ask("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            raise OSError(0, "its journal mode cannot be set") from error

    @cached_property
    def driver(self) -> LoopConnection:
        assert self.sync_connection is not None  # noqa: S101 - it was started
        driver = self.sync_connection.connection.driver_connection
        assert isinstance(driver, LoopConnection)  # noqa: S101 - of `sqlite_engine`
        return driver


async def _told(text: str, call: Awaitable[T]) -> T:
    """What a call of the driver gives; an error of its comes in SQLAlchemy's wrapping, as from SQLAlchemy itself."""
    try:
        return await call
    except sqlite3.Error as error:
        raise DBAPIError(text, None, error, hide_parameters=True) from error


def sqlite_engine(url: URL, threads: Executor, *, patience: float) -> AsyncEngine:
    """An engine that connects when it is asked to, and keeps nothing."""

    async def connect() -> LoopConnection:
        [file], options = engine.dialect.create_connect_args(url)
        return await LoopConnection(threads, {**options, "database": file}, patience=patience)

    engine = create_async_engine(url, hide_parameters=True, poolclass=NullPool, async_creator=connect)

    @event.listens_for(engine.sync_engine, "connect")
    def on_connect(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        for pragma in ("foreign_keys = ON", "synchronous = FULL"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    return engine


@contextmanager
def change_stamp(url: str) -> Iterator[Stamp | None]:
    """The stamp of a database that is there; None for one that has none: PostgreSQL.

    A look costs some microseconds and no transaction.
    """
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
