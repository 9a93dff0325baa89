"""The connections of one process: opened when they are needed, kept, and lent to one transaction at a time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType

from sqlalchemy.exc import TimeoutError as PoolTimeout

from edgewright.adapters.database.engine.direct_connection import DirectConnection, Lost, TransactionKind


class ConnectionPool:
    """Lends connections. Whoever was used last is lent first, with all that its server still knows of it.

    Args:
        connect: makes one that is not open yet.
        most: that there are at a time.
        wait: seconds that a caller waits for one of them to be free.
    """

    def __init__(self, connect: Callable[[], DirectConnection], *, most: int, wait: float) -> None:
        self._connect = connect
        self._places = asyncio.Semaphore(most)
        self._wait = wait
        self._idle: list[DirectConnection] = []
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False

    def transaction(self, kind: TransactionKind) -> "Transaction":
        """A transaction, committed at its end, or rolled back after an error."""
        return Transaction(self, kind)

    async def begin(self, kind: TransactionKind) -> DirectConnection:
        """A connection whose transaction has begun; to be given to ``end``."""
        await self._take_place()
        return await self._begun(kind)

    async def end(self, connection: DirectConnection, error: BaseException | None) -> None:
        """Commits, or after an error rolls back."""
        if error is None:
            await self._commit(connection)
        else:
            await self._roll_back(connection, error)

    @asynccontextmanager
    async def outside_transactions(self) -> AsyncIterator[DirectConnection]:
        """A connection of its own, closed at the end."""
        await self._take_place()
        connection = await self._opened()
        try:
            yield connection
        finally:
            await self._discard(connection)

    async def close(self) -> None:
        """Closes what is idle now, and what is lent when it comes back."""
        self._closed = True
        while self._idle:
            await self._idle.pop().close()
        if self._closing:
            await asyncio.wait(self._closing)

    async def _take_place(self) -> None:
        if not self._places.locked():
            await self._places.acquire()  # at once
            return
        try:
            async with asyncio.timeout(self._wait):
                await self._places.acquire()
        except TimeoutError:
            raise PoolTimeout(f"no connection was free for {self._wait:.0f} s") from None

    async def _opened(self) -> DirectConnection:
        """A new one; its place is given back if it cannot be opened."""
        connection = self._connect()
        try:
            await connection.start()
        except BaseException:
            self._places.release()
            raise
        return connection

    async def _begun(self, kind: TransactionKind) -> DirectConnection:
        """A connection whose transaction has begun. One that was lost while it lay idle is no error.

        Whoever finds one lost gives up all that lie idle: they went to the same server.
        """
        while True:
            fresh = not self._idle
            connection = await self._opened() if fresh else self._idle.pop()
            try:
                await connection.open_transaction(kind)
            except Lost as lost:
                await self._discard(connection)
                if fresh:
                    raise lost.__cause__ or lost from None
                await self._give_up_idle()
                await self._take_place()
            except BaseException as error:
                await self._roll_back(connection, error)
                raise
            else:
                return connection

    async def _give_up_idle(self) -> None:
        while self._idle:
            connection = self._idle.pop()
            connection.gives_up()
            await connection.close()

    async def _commit(self, connection: DirectConnection) -> None:
        try:
            await connection.close_transaction(commit=True)
        except BaseException:
            await self._discard(connection)
            raise
        await self._back(connection)

    async def _roll_back(self, connection: DirectConnection, error: BaseException) -> None:
        """Never fails: with a connection that is closed, its transaction is gone as well."""
        if isinstance(error, asyncio.CancelledError):
            connection.gives_up()
        try:
            await connection.close_transaction(commit=False)
        except Exception:  # noqa: BLE001 - what the caller has to hear is why it is rolled back
            await self._discard(connection)
        except BaseException:
            await self._discard(connection)
            raise
        else:
            await self._back(connection)

    async def _back(self, connection: DirectConnection) -> None:
        if self._closed:
            await self._discard(connection)
            return
        self._idle.append(connection)
        self._places.release()

    async def _discard(self, connection: DirectConnection) -> None:
        """Closes it, also when the caller is cancelled meanwhile; only then is its place free."""
        connection.gives_up()
        task = asyncio.create_task(self._close(connection))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
        await asyncio.shield(task)

    async def _close(self, connection: DirectConnection) -> None:
        try:
            await connection.close()
        finally:
            self._places.release()


class Transaction:
    """One transaction as a context. Not a generator: there is one for each look-up, and those cost more than it."""

    __slots__ = ("_connection", "_kind", "_pool")
    _connection: DirectConnection

    def __init__(self, pool: ConnectionPool, kind: TransactionKind) -> None:
        self._pool = pool
        self._kind = kind

    async def __aenter__(self) -> DirectConnection:
        self._connection = await self._pool.begin(self._kind)
        return self._connection

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._pool.end(self._connection, error)
