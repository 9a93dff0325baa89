"""PostgreSQL's connections. A server that does not answer keeps nobody waiting for long.

Of a server that has died the kernel tells. One that hangs (its machine is frozen, its disk stands still, the network
swallows packets) would be waited for for ever. So everything that asks it has a time limit of ours: when that is over
the connection is cut off on this side, and whoever waits gets an error as if it had been lost. Asking the server to
cancel instead, as the driver does by itself, would wait for the same server.
"""

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

import asyncpg  # type: ignore[import-untyped] # it ships no types
from sqlalchemy import NullPool
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from edgewright.adapters.database.engine.compiled_statements import CompiledStatements
from edgewright.adapters.database.engine.direct_connection import Answered, DirectConnection, Lost, TransactionKind

CONNECT_SECONDS = 5.0
PING_SECONDS = 3.0
"""How long the begin of a transaction may take, which shows whether a connection that lay idle still lives. With
``CONNECT_SECONDS`` less than an activity's 10 s, so that the worker can still say why it waits."""
TRANSACTION_SECONDS = 8.0
"""How long a transaction may take, locks of others included."""
LONG_SECONDS = 300.0
"""The same for one that reads or writes many rows, or waits for somebody else's migration."""
COMPLAINTS = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
"""Errors of the driver; the third: the connection was lost a moment ago, and is not closed yet."""
_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
T = TypeVar("T")


class PostgresqlConnection(DirectConnection):
    """One connection to a server. A transaction that takes too long is cut off, its end included.

    What was not committed by then never will be, unless the commit itself was on its way.
    """

    def __init__(self, engine: AsyncEngine, statements: CompiledStatements) -> None:
        super().__init__(engine, statements)
        self._timer: asyncio.TimerHandle | None = None

    async def begins(self, kind: TransactionKind) -> None:
        try:
            with _cut_off_after(PING_SECONDS, self.driver):
                await self.driver.execute("BEGIN" if kind.writes else _READING)
        except (*COMPLAINTS, OSError) as error:
            raise Lost from self._wrapped("BEGIN", error)
        self._timer = asyncio.get_running_loop().call_later(kind.seconds, self.driver.terminate)

    async def ends(self, *, commit: bool) -> None:
        text = "COMMIT" if commit else "ROLLBACK"
        await self._told(text, self.driver.execute(text))
        self._stop_timer()

    def gives_up(self) -> None:
        """A rollback would wait until the server has heard of a cancellation."""
        self._stop_timer()
        self.driver.terminate()

    async def ask(self, text: str, values: Sequence[Any], *, returns_rows: bool) -> Answered:
        if returns_rows:
            rows = await self._told(text, self.driver.fetch(text, *values))
            return Answered(rows, len(rows))
        status = await self._told(text, self.driver.execute(text, *values))
        return Answered((), int(status.rpartition(" ")[2]))

    async def ask_many(self, text: str, values: Sequence[Sequence[Any]]) -> Answered:
        await self._told(text, self.driver.executemany(text, values))
        return Answered((), -1)

    async def close(self) -> None:
        """Closes it; on this side only, when the server does not answer."""
        with _cut_off_after(PING_SECONDS, self.driver):
            await super().close()

    @cached_property
    def driver(self) -> asyncpg.Connection:
        assert self.sync_connection is not None  # noqa: S101 - it was started
        driver = self.sync_connection.connection.driver_connection
        assert isinstance(driver, asyncpg.Connection)  # noqa: S101 - of the dialect that `open_database` chose
        return driver

    async def _told(self, text: str, call: Awaitable[T]) -> T:
        """What a call of the driver gives; an error of its comes as from SQLAlchemy itself."""
        try:
            return await call
        except COMPLAINTS as error:
            raise self._wrapped(text, error) from error

    def _wrapped(self, text: str, error: Exception) -> Exception:
        if isinstance(error, OSError):
            return error
        lost = self.driver.is_closed()
        return DBAPIError(text, None, error, hide_parameters=True, connection_invalidated=lost)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def postgresql_engine(url: URL) -> AsyncEngine:
    """An engine that connects when it is asked to, and keeps nothing; transactions are ours."""
    return create_async_engine(
        url,
        hide_parameters=True,
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
        connect_args={"timeout": CONNECT_SECONDS},
    )


@contextmanager
def _cut_off_after(seconds: float, driver: asyncpg.Connection) -> Iterator[None]:
    timer = asyncio.get_running_loop().call_later(seconds, driver.terminate)
    try:
        yield
    finally:
        timer.cancel()
