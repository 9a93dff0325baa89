"""A connection to SQLite whose statements run where they are asked for: in the event loop (ADR 7).

A statement on a local file takes some tens of microseconds, a trip to a thread and back ten times that, and a
transaction is many statements. What may take long goes to a thread all the same: the end of a transaction that has
written, which waits for the disk, and a reading of many rows. Waiting for the lock of another process blocks nobody.

This is what SQLAlchemy's dialect ``aiosqlite`` asks of a driver's connection and cursor, and no more.
"""

import asyncio
import random
import sqlite3
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, Self, TypeVar

T = TypeVar("T")

FIRST_PAUSE_SECONDS = 0.001
LONGEST_PAUSE_SECONDS = 0.03
"""Between two tries while another process holds the lock."""


class LoopConnection:
    """One connection, for one task at a time; to be awaited once, which opens it.

    Args:
        threads: run what may take long.
        options: of ``sqlite3.connect``.
        patience: until a transaction ``begins``; see there.
    """

    def __init__(self, threads: Executor, options: Mapping[str, Any], *, patience: float) -> None:
        self._threads = threads
        self._options = options
        self._connection: sqlite3.Connection | None = None
        self._away: asyncio.Future[Any] | None = None
        self._patience = patience
        self._in_thread = False
        self._writes = False

    def __await__(self) -> Generator[Any, None, Self]:
        return self._opened().__await__()

    async def _opened(self) -> Self:
        ours: dict[str, Any] = {"timeout": 0, "isolation_level": None, "check_same_thread": False}
        self._connection = sqlite3.connect(**{**self._options, **ours})
        return self

    @property
    def isolation_level(self) -> None:
        """The driver begins nothing by itself."""
        return None

    def begins(self, *, patience: float, in_thread: bool = False, writes: bool = False) -> None:
        """Says how the next transaction is run.

        Args:
            patience: seconds that a statement waits for the lock of another process.
            in_thread: its statements may take long.
            writes: its end waits for the disk.
        """
        self._patience, self._in_thread, self._writes = patience, in_thread, writes

    async def ask(self, statement: str, parameters: Sequence[Any] = ()) -> tuple[list[Any], int]:
        """Runs a statement; returns its rows, and how many rows it has changed."""

        def asked() -> tuple[list[Any], int]:
            cursor = self._open.execute(statement, parameters)
            rows = cursor.fetchall()
            return rows, cursor.rowcount

        return await self.run(asked)

    async def ask_many(self, statement: str, parameters: Sequence[Sequence[Any]]) -> int:
        """Runs a statement for each of the parameters; returns how many rows that has changed."""
        return await self.run(lambda: self._open.executemany(statement, parameters).rowcount)

    def cursor(self) -> "LoopCursor":
        return LoopCursor(self, self._open.cursor())

    async def commit(self) -> None:
        await self.run(self._open.commit, in_thread=self._writes)

    async def rollback(self) -> None:
        await self.run(self._open.rollback)

    async def create_function(self, *arguments: Any, **options: Any) -> None:
        self._open.create_function(*arguments, **options)

    async def close(self) -> None:
        if self._connection is not None:
            await self.run(self._connection.close)
            self._connection = None

    def stop(self) -> None:
        """Gives it up without waiting for anything."""
        if self._connection is not None and self._away is None:
            self._connection.close()
        self._connection = None

    async def run(self, call: Callable[[], T], *, in_thread: bool = False) -> T:
        """Runs a call of the driver; again and again while the database is locked, until patience ends."""
        now = asyncio.get_running_loop().time
        deadline, pause = now() + self._patience, FIRST_PAUSE_SECONDS
        while True:
            if self._away is not None:
                await self._come_back(self._away)
            try:
                return await self._from_thread(call) if in_thread or self._in_thread else call()
            except sqlite3.OperationalError as error:
                locked = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not locked or now() + pause > deadline:
                    raise
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - spreads them, protects nothing
            pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    async def _from_thread(self, call: Callable[[], T]) -> T:
        """Also when the caller is cancelled meanwhile, the call is not: the next one waits for its end."""
        self._away = away = asyncio.get_running_loop().run_in_executor(self._threads, call)
        try:
            return await asyncio.shield(away)
        finally:
            if away.done():
                self._away = None

    async def _come_back(self, away: "asyncio.Future[Any]") -> None:
        await asyncio.wait([away])
        away.exception()  # whoever was cancelled cares no more
        self._away = None

    @property
    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise ValueError("no active connection")  # the words by which the dialect knows it
        return self._connection


class LoopCursor:
    """Statements of one connection."""

    def __init__(self, connection: LoopConnection, cursor: sqlite3.Cursor) -> None:
        self._connection = connection
        self._cursor = cursor
        self.arraysize = cursor.arraysize

    async def __aenter__(self) -> Self:
        return self

    @property
    def description(self) -> Any:
        return self._cursor.description

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount

    @property
    def lastrowid(self) -> int | None:
        return self._cursor.lastrowid

    async def execute(self, statement: str, parameters: Sequence[Any] = ()) -> None:
        await self._connection.run(lambda: self._cursor.execute(statement, parameters))

    async def executemany(self, statement: str, parameters: Sequence[Sequence[Any]]) -> None:
        await self._connection.run(lambda: self._cursor.executemany(statement, parameters))

    async def fetchall(self) -> list[Any]:
        return await self._connection.run(self._cursor.fetchall)

    async def close(self) -> None:
        self._cursor.close()
