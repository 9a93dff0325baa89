"""Statements run in the event loop; whatever takes long holds up nobody else."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, insert, select, text

from edgewright.adapters.database.engine.engine import LOCK_WAIT_SECONDS, Database, open_database
from edgewright.errors import Waiting

NUMBERS = Table("numbers", MetaData(), Column("number", Integer, unique=True))
BY_DRIVER = (insert(NUMBERS), select(NUMBERS.c.number).order_by(NUMBERS.c.number))
BY_SQLALCHEMY = (text("INSERT INTO numbers VALUES (:number)"), text("SELECT number FROM numbers ORDER BY number"))


class Disk:
    """Lets the end of each transaction wait, and says in which thread what has run."""

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.ready.set()
        self.waits = threading.Event()
        self.commits: list[int] = []

    def commit(self, commit: "sqlite3.Connection") -> None:
        self.commits.append(threading.get_ident())
        self.waits.set()
        assert self.ready.wait(30)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    disk, connect = Disk(), sqlite3.connect

    class Slow(sqlite3.Connection):
        def commit(self) -> None:
            disk.commit(self)
            super().commit()

    monkeypatch.setattr(sqlite3, "connect", lambda *args, **options: connect(*args, **{"factory": Slow} | options))
    yield disk
    disk.ready.set()


@pytest.fixture
async def database(tmp_path: Path, disk: Disk) -> AsyncIterator[Database]:
    async with open_database(f"sqlite:///{tmp_path}/some.db") as database:
        await database.migrate()
        async with database.write() as connection:
            await connection.execute(text("CREATE TABLE numbers (number INTEGER UNIQUE)"))
        disk.commits.clear()
        disk.waits.clear()
        yield database


@pytest.fixture(params=[BY_DRIVER, BY_SQLALCHEMY], ids=["by the driver", "by SQLAlchemy"], autouse=True)
def statements(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways in which a statement is run keep the same promises."""
    putting, reading = request.param
    monkeypatch.setattr(f"{__name__}.PUT", putting)
    monkeypatch.setattr(f"{__name__}.READ", reading)


PUT, READ = BY_DRIVER


async def put(database: Database, number: int) -> None:
    async with database.write() as connection:
        await connection.execute(PUT, {"number": number})


async def numbers(database: Database, *, long: bool = False) -> list[int]:
    async with database.read(long=long) as connection:
        return list(await connection.scalars(READ))


async def test_who_has_written_waits_for_the_disk_and_readers_go_on(
    database: Database, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.ready.clear()
    writing = asyncio.create_task(put(database, 1))
    await asyncio.to_thread(disk.waits.wait, 30)
    # a reader's transaction ends in the loop, by a commit that waits for nothing
    monkeypatch.setattr(disk, "commit", lambda _: None)  # for readers only
    assert await numbers(database) == []
    assert not writing.done()
    disk.ready.set()
    await writing
    assert await numbers(database) == [1]
    assert threading.get_ident() not in disk.commits


async def test_a_cancelled_writer_leaves_a_connection_that_can_be_used(database: Database, disk: Disk) -> None:
    disk.ready.clear()
    writing = asyncio.create_task(put(database, 1))
    await asyncio.to_thread(disk.waits.wait, 30)
    writing.cancel()
    later = [asyncio.create_task(put(database, number)) for number in (2, 3)]
    await asyncio.sleep(0)
    disk.ready.set()
    with pytest.raises(asyncio.CancelledError):
        await writing
    await asyncio.gather(*later)
    assert await numbers(database) in ([1, 2, 3], [2, 3]), "what was broken off is there whole or not at all"


async def test_waiting_for_another_process_holds_up_nobody(database: Database, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "some.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        writing = asyncio.create_task(put(database, 1))
        for _ in range(20):
            assert await numbers(database) == []
            await asyncio.sleep(0.005)
        assert not writing.done()
        other.execute("ROLLBACK")
    await asyncio.wait_for(writing, LOCK_WAIT_SECONDS)
    assert await numbers(database) == [1]


async def test_a_new_connection_waits_for_a_process_that_has_the_file_for_itself(tmp_path: Path) -> None:
    """As long as nobody has turned the write-ahead log on, a writer keeps readers out; its lock ends by itself."""
    with closing(sqlite3.connect(tmp_path / "new.db", isolation_level=None)) as other:
        other.execute("CREATE TABLE numbers (number INTEGER)")
        other.execute("BEGIN EXCLUSIVE")
        async with open_database(f"sqlite:///{tmp_path}/new.db") as database:
            reading = asyncio.create_task(numbers(database))
            done, _ = await asyncio.wait([reading], timeout=0.3)
            assert not done
            other.execute("ROLLBACK")
            assert await reading == []


async def test_patience_ends(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgewright.adapters.database.engine.writer_queue.WriterQueue._patience_of", lambda *_: 0.05)
    with closing(sqlite3.connect(tmp_path / "some.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(Waiting) as refusal:
            await put(database, 1)
    assert refusal.value.code == "database_unavailable"
    await put(database, 1)


async def test_many_rows_are_read_in_a_thread(database: Database) -> None:
    """A statement that counts to some millions takes a second; the loop turns meanwhile."""
    count = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3000000) SELECT max(x) FROM c"

    async def slowly() -> int:
        async with database.read(long=True) as connection:
            return int(await connection.scalar(text(count)) or 0)

    reading, turns = asyncio.create_task(slowly()), 0
    while not reading.done():
        await asyncio.sleep(0.001)
        turns += 1
    assert await reading == 3_000_000
    assert turns > 5


async def test_what_fails_leaves_nothing_behind(database: Database) -> None:
    await put(database, 1)
    with pytest.raises(Exception, match="UNIQUE"):
        await put(database, 1)
    assert await numbers(database, long=True) == [1]
    await put(database, 2)
    assert await numbers(database) == [1, 2]
