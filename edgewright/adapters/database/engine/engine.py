"""One database: its connections, its transactions and its clock."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Integer, Select, func, literal_column, select
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from edgewright.adapters.database.engine.compiled_statements import CompiledStatements
from edgewright.adapters.database.engine.connection_pool import ConnectionPool
from edgewright.adapters.database.engine.direct_connection import DirectConnection, TransactionKind
from edgewright.adapters.database.engine.errors import Translated
from edgewright.adapters.database.engine.postgresql_engine import (
    LONG_SECONDS,
    TRANSACTION_SECONDS,
    PostgresqlConnection,
    postgresql_engine,
)
from edgewright.adapters.database.engine.sqlite_engine import SqliteConnection, sqlite_engine
from edgewright.adapters.database.engine.writer_queue import WriterQueue
from edgewright.adapters.database.migrations import demand_present, upgrade
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
_CLOCK = select(func.clock_timestamp())
_ONE = select(literal_column("1", Integer))


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
        self._translated = Translated(self._name)
        self._statements = CompiledStatements(engine.dialect)
        connection: type[DirectConnection] = SqliteConnection if self._on_sqlite else PostgresqlConnection
        self._pool = ConnectionPool(
            lambda: connection(engine, self._statements), most=CONNECTIONS, wait=CONNECTION_WAIT_SECONDS
        )
        self._queue = WriterQueue(self._name, lock_wait=LOCK_WAIT_SECONDS, queue_wait=QUEUE_WAIT_SECONDS)

    @asynccontextmanager
    async def read(self, *, long: bool = False) -> AsyncIterator[AsyncConnection]:
        """A transaction that sees one state of the database, and cannot be kept waiting by writers.

        Args:
            long: it may read many rows, and take its time; on SQLite, all else in this process goes on meanwhile.
        """
        with self._translated:
            async with self._pool.transaction(_LONG_READING if long else _READING) as connection:
                yield connection

    async def look_up(self, statement: Select[Any], parameters: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        """The rows of one statement: a transaction of its own, and cheaper than ``read``.

        Values in the order of the columns. Whoever asks makes a record of them, which has names and types.
        """
        with self._translated:
            async with self._pool.transaction(_LOOKING_UP) as connection:
                rows: Sequence[Sequence[Any]] = (await connection.execute(statement, parameters)).all()
                return rows

    @asynccontextmanager
    async def write(self, *, long: bool = False) -> AsyncIterator[AsyncConnection]:
        """A transaction that may write. On SQLite it owns the database from its begin to its end.

        On PostgreSQL, rows are locked before the feed's counter, in this order everywhere, so that no two
        transactions wait for each other.

        Args:
            long: it may write many rows, or wait for another process that does.
        """
        if not self._on_sqlite:
            with self._translated:
                async with self._pool.transaction(_kind(writes=True, long=long)) as connection:
                    yield connection
            return
        async with self._queue.turn() as turn:
            with self._translated:
                kind = _kind(writes=True, long=long, patience=turn.patience)
                async with self._pool.transaction(kind) as connection:
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
        shown = await connection.scalar(_CLOCK)
        assert isinstance(shown, datetime)  # noqa: S101 - the driver's type of a timestamp with time zone
        return shown.astimezone(UTC)

    async def ping(self) -> None:
        """Returns if the database answers.

        Raises:
            Waiting: code ``database_unavailable``.
        """
        async with self.read() as connection:
            await connection.execute(_ONE)

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
                await connection.execute(select(func.pg_advisory_xact_lock(MIGRATION_LOCK)))
            await connection.run_sync(upgrade)

    async def close(self) -> None:
        """Closes all connections."""
        await self._pool.close()
        await self._engine.dispose()
        if self._threads is not None:
            self._threads.shutdown(wait=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _keep_a_write_ahead_log(self) -> None:
        with self._translated:
            async with self._pool.outside_transactions() as connection:
                assert isinstance(connection, SqliteConnection)  # noqa: S101 - asked for on SQLite only
                await connection.keep_a_write_ahead_log(LOCK_WAIT_SECONDS)


def _unusable(detail: str) -> Invalid:
    return Invalid(
        detail,
        code="database_url_invalid",
        hint="EDGEWRIGHT_DATABASE_URL looks like sqlite:////var/lib/edgewright/edgewright.db or "
        "postgresql://user:password@host/edgewright.",
    )


def open_database(url: str, *, clock: Callable[[], datetime] | None = None) -> Database:
    """A database that connects when it is first used.

    Raises:
        Invalid: code ``database_url_invalid``.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        # Without the cause: its text holds the URL, and with it perhaps a password.
        raise _unusable("The database URL cannot be read.") from None
    parsed = parsed.set(drivername=_DRIVERS.get(parsed.drivername, parsed.drivername))
    if parsed.drivername not in _DRIVERS.values():
        raise _unusable("The database URL names neither SQLite nor PostgreSQL.")
    if parsed.get_backend_name() == "sqlite":
        threads = ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="database")
        return Database(sqlite_engine(parsed, threads, patience=LOCK_WAIT_SECONDS), threads=threads, clock=clock)
    return Database(postgresql_engine(parsed), clock=clock)


def sqlite_file(database_url: str) -> Path | None:
    """The file of a SQLite database, absolute; None for any other database, and for one in memory.

    Args:
        database_url: one that ``open_database`` takes.
    """
    url = make_url(database_url)
    if url.get_backend_name() != "sqlite" or not url.database or url.database == ":memory:":
        return None
    return Path(url.database).resolve()


def _kind(*, long: bool, writes: bool = False, patience: float = LOCK_WAIT_SECONDS) -> TransactionKind:
    return TransactionKind(writes, long, patience, LONG_SECONDS if long else TRANSACTION_SECONDS)


_READING, _LONG_READING = _kind(long=False), _kind(long=True)
_LOOKING_UP = replace(_READING, lone=True)


def _shown(url: URL) -> str:
    """How messages call the database: no user, password or query."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    host = f"{url.host}:{url.port}" if url.port else str(url.host or url.query.get("host", "this machine"))
    return f"{url.database} on {host}"
