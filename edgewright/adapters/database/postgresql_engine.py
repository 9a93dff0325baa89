"""PostgreSQL's connections. A server that does not answer keeps nobody waiting for long.

Of a server that has died the kernel tells. One that hangs (its machine is frozen, its disk stands still, the network
swallows packets) would be waited for for ever. So everything that asks it has a time limit of ours: when that is over
the connection is cut off on this side, and whoever waits gets an error as if it had been lost. Asking the server to
cancel instead, as the driver does by itself, would wait for the same server.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import asyncpg  # type: ignore[import-untyped] # it ships no types
from sqlalchemy import event
from sqlalchemy.engine import URL
from sqlalchemy.exc import InvalidatePoolError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

CONNECT_SECONDS = 5.0
PING_SECONDS = 3.0
"""How long a connection that lay idle may take to answer. With ``CONNECT_SECONDS`` less than an activity's 10 s, so
that the worker can still say why it waits."""
TRANSACTION_SECONDS = 8.0
"""How long a transaction may take, locks of others included."""
LONG_SECONDS = 300.0
"""The same for one that reads or writes many rows, or waits for somebody else's migration."""
LOST = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
"""What a ping of a useless connection ends with; the third: it was lost a moment ago, and is not closed yet."""


def postgresql_engine(url: URL, *, connections: int, wait: float) -> AsyncEngine:
    """An engine that connects when it is first used.

    Args:
        connections: that it holds at most.
        wait: seconds that a caller waits for one of them to be free.
    """
    engine = create_async_engine(
        url,
        hide_parameters=True,
        pool_size=connections,
        max_overflow=0,
        pool_timeout=wait,
        connect_args={"timeout": CONNECT_SECONDS},
    )

    @event.listens_for(engine.sync_engine, "checkout")
    def on_checkout(connection: Any, _record: Any, _proxy: Any) -> None:
        """Asks whether it lives, with one trip; the pool's own ping takes three, and has no time limit."""
        with _cut_off_after(PING_SECONDS, connection.driver_connection):
            try:
                connection.run_async(lambda driver: driver.execute("SELECT 1"))
            except LOST as lost:
                raise InvalidatePoolError from lost

    return engine


@asynccontextmanager
async def limited_transaction(engine: AsyncEngine, seconds: float) -> AsyncIterator[AsyncConnection]:
    """A transaction whose connection is cut off when it takes longer, its end included.

    What was not committed by then never will be, unless the commit itself was on its way.
    """
    timer: asyncio.TimerHandle | None = None
    try:
        async with engine.begin() as connection:
            driver = _driver_of(connection)
            timer = asyncio.get_running_loop().call_later(seconds, driver.terminate)
            try:
                yield connection
            except asyncio.CancelledError:
                driver.terminate()  # a rollback would wait until the server has heard of the cancellation
                raise
    finally:
        if timer is not None:
            timer.cancel()


def _driver_of(connection: AsyncConnection) -> asyncpg.Connection:
    assert connection.sync_connection is not None  # noqa: S101 - it has begun
    driver = connection.sync_connection.connection.driver_connection
    assert isinstance(driver, asyncpg.Connection)  # noqa: S101 - of the dialect that `open_database` chose
    return driver


@contextmanager
def _cut_off_after(seconds: float, driver: asyncpg.Connection) -> Iterator[None]:
    timer = asyncio.get_running_loop().call_later(seconds, driver.terminate)
    try:
        yield
    finally:
        timer.cancel()
