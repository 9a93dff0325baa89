"""One database: its connections, its transactions and its clock."""

import sqlite3
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Connection, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from edgewright.adapters.database.errors import translate
from edgewright.adapters.database.migrations import demand_present, upgrade
from edgewright.adapters.database.postgresql_engine import (
    LONG_SECONDS,
    TRANSACTION_SECONDS,
    limited_transaction,
    postgresql_engine,
)
from edgewright.adapters.database.sqlite_connection import LoopConnection
from edgewright.adapters.database.writer_queue import WriterQueue
from edgewright.errors import Invalid

CONNECTIONS = 16
"""Connections that one process holds at most."""
CONNECTION_WAIT_SECONDS = 20.0
LOCK_WAIT_SECONDS = 8.0
"""How long a writer on SQLite waits for the writer of another process. Less than an activity's 10 s, so that the
worker can still say why it waits."""
QUEUE_WAIT_SECONDS = 30.0
"""How long a writer on SQLite stands behind other writers of its own process."""
MIGRATION_LOCK = 0x_ED6E_0001
"""Key of the PostgreSQL advisory lock that lets one process migrate at a time."""
_DRIVERS = {"sqlite": "sqlite+aiosqlite", "postgresql": "postgresql+asyncpg", "postgres": "postgresql+asyncpg"}
_PATIENCE = "edgewright_patience"
"""Execution option of a transaction that writes: the seconds that it waits for the lock of another process."""
_LONG = "edgewright_long"
"""Execution option of a transaction that reads many rows."""


class Database:
    """Transactions on one database. Use as an async context manager, or call ``close``.

    Args:
        threads: of SQLite's connections; shut down with the engine.
        clock: stands in for the clock of the database, for tests.
    """

    def __init__(
        self, engine: AsyncEngine, *, threads: Executor | None = None, clock: Callable[[], datetime] | None = None
    ) -> None:
        self._engine = engine
        self._threads = threads
        self._clock = clock
        self._on_sqlite = engine.dialect.name == "sqlite"
        self._name = _shown(engine.url)
        reading: dict[str, Any] = {}
        if not self._on_sqlite:
            reading = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        self._readers = engine.execution_options(**reading)
        self._long_readers = engine.execution_options(**reading, **{_LONG: True})
        self._queue = WriterQueue(self._name, lock_wait=LOCK_WAIT_SECONDS, queue_wait=QUEUE_WAIT_SECONDS)

    @asynccontextmanager
    async def read(self, *, long: bool = False) -> AsyncIterator[AsyncConnection]:
        """A transaction that sees one state of the database, and cannot be kept waiting by writers.

        Args:
            long: it may read many rows, and take its time; on SQLite, all else in this process goes on meanwhile.
        """
        readers = self._long_readers if long else self._readers
        async with self._translated(), self._begun(readers, long=long) as connection:
            yield connection

    @asynccontextmanager
    async def write(self, *, long: bool = False) -> AsyncIterator[AsyncConnection]:
        """A transaction that may write. On SQLite it owns the database from its begin to its end.

        On PostgreSQL, rows are locked before the feed's counter, in this order everywhere, so that no two
        transactions wait for each other.

        Args:
            long: it may write many rows, or wait for another process that does.
        """
        if not self._on_sqlite:
            async with self._translated(), self._begun(self._engine, long=long) as connection:
                yield connection
            return
        async with self._queue.turn() as turn, self._translated():
            writers = self._engine.execution_options(**{_PATIENCE: turn.patience})
            async with writers.begin() as connection:
                turn.has_begun = True
                yield connection

    async def now(self, connection: AsyncConnection) -> datetime:
        """The clock that decides: the database's."""
        if self._clock is not None:
            return self._clock()
        if self._on_sqlite:  # its clock is that of this machine; asking for it would be another trip to its thread
            moment = datetime.now(UTC)
            return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
        # clock_timestamp, not now: a transaction may have waited long for a lock since it began.
        shown = await connection.scalar(text("SELECT clock_timestamp()"))
        assert isinstance(shown, datetime)  # noqa: S101 - the driver's type of a timestamp with time zone
        return shown.astimezone(UTC)

    async def ping(self) -> None:
        """Returns if the database answers.

        Raises:
            Waiting: code ``database_unavailable``.
        """
        async with self.read() as connection:
            await connection.execute(text("SELECT 1"))

    async def demand_schema(self) -> None:
        """Returns if the schema is the one that this program works with.

        Raises:
            OtherSchema: ``schema_newer`` or ``schema_older``; the program has to leave.
        """
        async with self.read() as connection:
            await connection.run_sync(demand_present)

    async def migrate(self) -> None:
        """Brings the schema up to date. Several processes may do so at once.

        Raises:
            OtherSchema: ``schema_newer``: a newer program has brought it further.
        """
        if self._on_sqlite:
            await self._keep_a_write_ahead_log()
        async with self.write(long=True) as connection:
            if not self._on_sqlite:
                await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK})
            await connection.run_sync(upgrade)

    def _begun(self, engine: AsyncEngine, *, long: bool) -> AbstractAsyncContextManager[AsyncConnection]:
        if self._on_sqlite:
            return engine.begin()
        return limited_transaction(engine, LONG_SECONDS if long else TRANSACTION_SECONDS)

    async def close(self) -> None:
        """Closes all connections."""
        await self._engine.dispose()
        if self._threads is not None:
            self._threads.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @asynccontextmanager
    async def _translated(self) -> AsyncIterator[None]:
        try:
            yield
        except (SQLAlchemyError, OSError) as error:
            meaning = translate(error, self._name)
            if meaning is None:
                raise
            raise meaning from error

    async def _keep_a_write_ahead_log(self) -> None:
        """Turns the log on; the file remembers it. Two processes that do so at once get "locked" at once."""
        async with self._translated(), self._engine.connect() as connection:
            driver = (await connection.get_raw_connection()).driver_connection
            assert isinstance(driver, LoopConnection)  # noqa: S101 - of `_sqlite`
            driver.begins(patience=LOCK_WAIT_SECONDS)
            try:
                await driver.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                raise OSError(0, "its journal mode cannot be set") from error


def open_database(url: str, *, clock: Callable[[], datetime] | None = None) -> Database:
    """A database that connects when it is first used.

    Raises:
        Invalid: code ``database_url_invalid``.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        # Without the cause: its text holds the URL, and with it perhaps a password.
        raise Invalid(
            "The database URL cannot be read.",
            code="database_url_invalid",
            hint="It looks like sqlite+aiosqlite:////var/lib/edgewright/edgewright.db or "
            "postgresql+asyncpg://user:password@host/edgewright.",
        ) from None
    parsed = parsed.set(drivername=_DRIVERS.get(parsed.drivername, parsed.drivername))
    if parsed.get_backend_name() == "sqlite":
        threads = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="database")
        return Database(_sqlite(parsed, threads), threads=threads, clock=clock)
    engine = postgresql_engine(parsed, connections=CONNECTIONS, wait=CONNECTION_WAIT_SECONDS)
    return Database(engine, clock=clock)


def sqlite_file(database_url: str) -> Path | None:
    """The file of a SQLite database, absolute; None for any other database, and for one in memory.

    Args:
        database_url: one that ``open_database`` takes.
    """
    url = make_url(database_url)
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        return None
    return Path(url.database).resolve()


def _sqlite(url: URL, threads: Executor) -> AsyncEngine:
    async def connect() -> LoopConnection:
        [file], options = engine.dialect.create_connect_args(url)
        return await LoopConnection(threads, {**options, "database": file}, patience=LOCK_WAIT_SECONDS)

    engine = create_async_engine(
        url,
        hide_parameters=True,
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_timeout=CONNECTION_WAIT_SECONDS,
        async_creator=connect,
    )

    @event.listens_for(engine.sync_engine, "connect")
    def on_connect(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        for pragma in ("foreign_keys = ON", "synchronous = FULL"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @event.listens_for(engine.sync_engine, "begin")
    def on_begin(connection: Connection) -> None:
        options, driver = connection.get_execution_options(), connection.connection.driver_connection
        assert isinstance(driver, LoopConnection)  # noqa: S101 - of `connect`
        patience = options.get(_PATIENCE)
        if patience is None:
            driver.begins(patience=LOCK_WAIT_SECONDS, in_thread=options.get(_LONG, False))
            if not driver.begin_reading():
                connection.exec_driver_sql("BEGIN")
            return
        # A reader that became a writer would be refused when another process has written since; writers say so first.
        driver.begins(patience=patience, writes=True)
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _shown(url: URL) -> str:
    """How messages call the database: no user, password or query."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    host = f"{url.host}:{url.port}" if url.port else str(url.host or url.query.get("host", "this machine"))
    return f"{url.database} on {host}"
