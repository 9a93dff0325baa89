"""What a transaction costs, beside the same statements run by SQLAlchemy itself; both in turns, in one run.

SQLAlchemy begins its transactions here as cheaply as it can, so that the comparison does not flatter us.
"""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from postgresql_server import postgresql_server
from sqlalchemy import Connection, bindparam, event, select
from sqlalchemy.engine import make_url
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from bench.lines import TableLine
from edgewright.adapters.database.engine.engine import Database, open_database
from edgewright.adapters.database.engine.sqlite_connection import LoopConnection
from edgewright.adapters.database.events.events import record
from edgewright.adapters.database.tables import events
from edgewright.domain.events import EventKind

TURNS = 5
Opening = Callable[[], AbstractAsyncContextManager[AsyncConnection]]


_FIRST = select(events).where(events.c.position == bindparam("here"))


async def looks_up(read: Opening) -> None:
    """One row by its key."""
    async with read() as connection:
        assert (await connection.execute(_FIRST, {"here": 1})).one().detail == {"number": 1}


async def asks_anew(read: Opening) -> None:
    """The same with a statement that is made each time."""
    async with read() as connection:
        assert (await connection.execute(select(events).where(events.c.position == 1))).one().actor == "bench"


async def writes(write: Opening, database: Database) -> None:
    """A position of the feed, and an event."""
    async with write() as connection:
        at = await database.now(connection)
        await record(
            connection, at, cluster=None, actor="bench", kind=EventKind.CLUSTER_CREATED, message="One.", number=1
        )


async def costs(url: str, name: str, times: int) -> list[TableLine]:
    """Processor and wall-clock time of this process for each transaction, the best of some turns."""
    async with open_database(url) as database, plain_engine(url) as plain:
        await database.migrate()
        reading, writing = plain
        await writes(database.write, database)
        measured: list[tuple[str, Callable[[], Awaitable[None]], Callable[[], Awaitable[None]], int]] = [
            ("look-up", lambda: looks_up(database.read), lambda: looks_up(reading), times),
            ("look-up by a new statement", lambda: asks_anew(database.read), lambda: asks_anew(reading), times),
            ("write", lambda: writes(database.write, database), lambda: writes(writing, database), times // 4),
        ]
        lines: list[TableLine] = []
        for what, ours, theirs, count in measured:
            turns = [(await taken(ours, count), await taken(theirs, count)) for _ in range(TURNS)]
            ours_best, theirs_best = (tuple(map(min, zip(*sides, strict=True))) for sides in zip(*turns, strict=True))
            ratio = theirs_best[0] / ours_best[0]
            lines.append(
                TableLine(f"{name}, {what}", f"{_shown(ours_best)}; ratio {ratio:.1f}", _shown(theirs_best), "-")
            )
    return lines


async def taken(call: Callable[[], Awaitable[None]], times: int) -> tuple[float, float]:
    """Seconds of this process's processor time, and of the wall clock, for one call."""
    await call()
    worked, began = time.process_time(), time.perf_counter()
    for _ in range(times):
        await call()
    return (time.process_time() - worked) / times, (time.perf_counter() - began) / times


@asynccontextmanager
async def plain_engine(url: str) -> AsyncIterator[tuple[Opening, Opening]]:
    """How transactions begin with SQLAlchemy alone: to read, and to write."""
    if url.startswith("postgresql"):
        engine = create_async_engine(url)

        @event.listens_for(engine.sync_engine, "checkout")
        def on_checkout(connection: Any, _record: Any, _proxy: Any) -> None:
            """Asks whether it lives, with one trip; SQLAlchemy's own ping takes three."""
            connection.run_async(lambda driver: driver.execute("SELECT 1"))

        reading = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        yield reading.begin, engine.begin
        await engine.dispose()
        return
    with ThreadPoolExecutor(1) as threads:
        engine = plain_sqlite(url, threads)
        yield engine.begin, engine.execution_options(writes=True).begin
        await engine.dispose()


def plain_sqlite(url: str, threads: ThreadPoolExecutor) -> AsyncEngine:
    """SQLAlchemy's pool and dialect on the connection that runs statements in the event loop."""

    async def connect() -> LoopConnection:
        return await LoopConnection(threads, {"database": make_url(url).database}, patience=8)

    engine = create_async_engine(url, async_creator=connect)

    @event.listens_for(engine.sync_engine, "begin")
    def on_begin(connection: Connection) -> None:
        writes: bool = connection.get_execution_options().get("writes", False)
        adapted: Any = connection.connection.dbapi_connection
        adapted.driver_connection.begins(patience=8, writes=writes)
        adapted.run_async(lambda driver: driver.ask("BEGIN IMMEDIATE" if writes else "BEGIN"))

    return engine


def _shown(seconds: tuple[float, ...]) -> str:
    worked, waited = seconds
    return f"{worked * 1000:.3f} ms ({waited * 1000:.3f} ms of the clock)"


def database_lines(times: int = 2_000) -> list[TableLine]:
    """Both stores. ``before`` is SQLAlchemy alone."""
    with tempfile.TemporaryDirectory() as folder:
        lines = asyncio.run(costs(f"sqlite+aiosqlite:///{folder}/edgewright.db", "SQLite", times))
    with postgresql_server() as server:
        server.copy_database("template1", "edgewright")
        return lines + asyncio.run(costs(server.socket_url("edgewright"), "PostgreSQL", times // 2))
