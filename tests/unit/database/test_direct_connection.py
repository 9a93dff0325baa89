"""Statements go straight to the driver; what a caller sees is what SQLAlchemy would have given."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import (
    BindParameter,
    Column,
    Connection,
    Integer,
    MetaData,
    Table,
    Text,
    Uuid,
    bindparam,
    delete,
    event,
    func,
    insert,
    literal,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.exc import DBAPIError, InvalidRequestError, MultipleResultsFound
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.columns import DOCUMENT, MOMENT
from edgewright.adapters.database.engine import compiled_statements
from edgewright.adapters.database.engine.engine import Database, open_database
from edgewright.errors import Waiting

METADATA = MetaData()
THINGS = Table(
    "things",
    METADATA,
    Column("id", Uuid, primary_key=True),
    Column("class", Text, key="klass"),
    Column("at", MOMENT),
    Column("body", DOCUMENT),
    Column("counted", Integer, default=7),
)
PLAIN = Table("plain", METADATA, Column("number", Integer, primary_key=True), Column("word", Text, unique=True))
AT = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
ONE = {"id": UUID(int=1), "klass": "a", "at": AT, "body": {"b": [1, None]}, "counted": 1}
TWO = {"id": UUID(int=2), "klass": "b", "at": None, "body": None, "counted": 2}


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    async with open_database(f"sqlite:///{tmp_path}/some.db") as database:
        async with database.write() as connection:
            await connection.run_sync(METADATA.create_all)
            await connection.execute(insert(THINGS), [ONE, TWO])
        yield database


def by_driver(connection: AsyncConnection) -> bool:
    """Whether SQLAlchemy has taken no part in the transaction so far."""
    return not connection.in_transaction()


NAMED: BindParameter[Any] = bindparam("named", expanding=True)
SELECTS = [
    (select(THINGS).where(THINGS.c.id == bindparam("here")), {"here": ONE["id"]}),
    (select(THINGS).where(THINGS.c.klass == "b"), {}),
    (select(THINGS).where(THINGS.c.id.in_([ONE["id"], uuid4()])), {}),
    (select(THINGS).where(THINGS.c.id.in_([])), {}),
    (select(THINGS.c.klass).where(THINGS.c.at >= AT, THINGS.c.klass.in_(NAMED)), {"named": ["a", "b"]}),
    (select(THINGS.c.klass).where(tuple_(THINGS.c.id, THINGS.c.klass).in_([(ONE["id"], "a")])), {}),
    (select(func.count(), func.max(THINGS.c.at)), {}),
    (select(THINGS.c.klass.label("k"), literal(3)).order_by(THINGS.c.klass.desc()).limit(1).offset(1), {}),
    (select(THINGS.c.klass).union_all(select(PLAIN.c.word)).order_by("klass"), {}),
]


@pytest.mark.parametrize(("statement", "given"), SELECTS, ids=range(len(SELECTS)))
async def test_rows_are_those_that_sqlalchemy_gives(
    database: Database, statement: Any, given: dict[str, Any]
) -> None:
    async with database.read() as connection:
        found = (await connection.execute(statement, given)).all()
        assert by_driver(connection)
        named = (await connection.execute(statement, given)).mappings().all()
        assert by_driver(connection)
        theirs = (await connection.execute(statement, given, execution_options={"told": True})).all()
        assert not by_driver(connection)
    assert found == theirs
    assert [list(row.values()) for row in named] == [list(row._mapping.values()) for row in theirs]


async def test_a_column_that_is_selected_twice_is_not_misread(database: Database) -> None:
    async with database.read() as connection:
        for twice in (select(THINGS.c.at, THINGS.c.at), select(THINGS.c.at, THINGS.c.at, THINGS.c.klass)):
            try:
                found = (await connection.execute(twice.order_by(THINGS.c.id))).all()
            except InvalidRequestError as refused:
                assert "label" in str(refused)
            else:
                assert found[0][:2] == (AT, AT)


async def test_statements_of_one_shape_keep_their_own_parameters(database: Database) -> None:
    async with database.read() as connection:
        found = [await connection.scalar(select(THINGS.c.klass).where(THINGS.c.counted == n)) for n in (2, 1, 3, 2)]
        assert found == ["b", "a", None, "b"]


async def test_a_statement_that_is_run_again_takes_what_it_is_given_then(database: Database) -> None:
    ours, theirs = (select(literal(word), bindparam("given", type_=Integer)) for word in ("ours", "theirs"))
    async with database.read() as connection:
        for number, (word, statement) in enumerate([("ours", ours), ("theirs", theirs), ("theirs", theirs)] * 2):
            assert (await connection.execute(statement, {"given": number})).one() == (word, number)
    with pytest.raises(InvalidRequestError, match="given"):
        async with database.read() as connection:
            await connection.execute(theirs)


async def test_rows_are_found_by_attribute_and_by_column(database: Database) -> None:
    async with database.read() as connection:
        row = (await connection.execute(select(THINGS).where(THINGS.c.id == ONE["id"]))).one()
        with pytest.raises(MultipleResultsFound):
            (await connection.execute(select(THINGS))).one()
    assert (row.id, row.klass, row.at, row.body) == (ONE["id"], "a", AT, {"b": [1, None]})
    assert row._mapping[THINGS.c.klass] == row._mapping["class"] == row._mapping["klass"] == "a"


async def test_changes_say_how_many_rows_they_changed_and_give_back_what_is_asked_for(database: Database) -> None:
    async with database.write() as connection:
        changed = await connection.execute(update(THINGS).values(klass="c").where(THINGS.c.counted > 0))
        assert changed.rowcount == 2
        unchanged = await connection.execute(delete(THINGS).where(THINGS.c.klass == "a"))
        assert unchanged.rowcount == 0
        asked = update(THINGS).values(counted=THINGS.c.counted + 1).where(THINGS.c.id == ONE["id"])
        assert (await connection.execute(asked.returning(THINGS.c.id, THINGS.c.counted))).one() == (ONE["id"], 2)
        assert by_driver(connection)


async def test_what_sqlalchemy_makes_in_python_it_still_makes(database: Database) -> None:
    """A default value is no part of the text."""
    async with database.write() as connection:
        await connection.execute(insert(THINGS), {"id": UUID(int=3)})
        assert not by_driver(connection)
        assert await connection.scalar(select(THINGS.c.counted).where(THINGS.c.id == UUID(int=3))) == 7


async def test_both_ways_share_one_transaction_and_its_end(database: Database) -> None:
    async with database.write() as connection:
        await connection.execute(insert(PLAIN), {"number": 1, "word": "driver"})
        await connection.execute(text("INSERT INTO plain VALUES (2, 'text')"))
        assert await connection.scalar(select(func.count()).select_from(PLAIN)) == 2
    with pytest.raises(LookupError):
        async with database.write() as connection:
            await connection.execute(text("INSERT INTO plain VALUES (3, 'text too')"))
            await connection.execute(insert(PLAIN), {"number": 4, "word": "driver too"})
            raise LookupError
    async with database.read() as connection:
        assert list(await connection.scalars(select(PLAIN.c.number).order_by(PLAIN.c.number))) == [1, 2]
        assert by_driver(connection), "the transaction before has left nothing behind"


async def test_a_missing_parameter_is_named(database: Database) -> None:
    async with database.read() as connection:
        with pytest.raises(InvalidRequestError, match="here"):
            await connection.execute(select(THINGS).where(THINGS.c.id == bindparam("here")))


async def test_an_error_names_the_statement_and_hides_its_parameters(database: Database) -> None:
    with pytest.raises(DBAPIError) as refused:
        async with database.write() as connection:
            for number in (1, 2):
                await connection.execute(insert(PLAIN), {"number": number, "word": "hidden-word"})
    assert "INSERT INTO plain" in str(refused.value) and "hidden-word" not in str(refused.value)
    async with database.read() as connection:
        assert await connection.scalar(select(func.count()).select_from(PLAIN)) == 0


async def test_who_listens_to_the_engine_hears_of_every_transaction_and_statement(database: Database) -> None:
    heard: list[str] = []

    def begun(_connection: Connection) -> None:
        heard.append("begin")

    def told(_connection: object, _cursor: object, statement: str, *_more: object) -> None:
        heard.append(statement.partition(" ")[0])

    event.listen(database._engine.sync_engine, "begin", begun)
    event.listen(database._engine.sync_engine, "before_cursor_execute", told)
    async with database.write() as connection:
        await connection.execute(insert(PLAIN), [{"number": 1, "word": "a"}, {"number": 2, "word": "b"}])
        await connection.execute(delete(PLAIN))
    assert heard == ["begin", "INSERT", "DELETE"]


async def test_what_is_compiled_is_bounded(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_statements, "MOST", 3)
    async with database.read() as connection:
        for width in range(1, 8):
            column = select(*(literal(number) for number in range(width)))
            assert len((await connection.execute(column)).one()) == width
            assert len(connection._statements._compiled) <= 3  # type: ignore[attr-defined] # a DirectConnection


async def test_more_callers_than_connections_wait_and_are_refused_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgewright.adapters.database.engine.engine.CONNECTIONS", 2)
    monkeypatch.setattr("edgewright.adapters.database.engine.engine.CONNECTION_WAIT_SECONDS", 0.2)
    async with open_database(f"sqlite:///{tmp_path}/some.db") as database:
        released = asyncio.Event()

        async def hold() -> None:
            async with database.read():
                await released.wait()

        holding = [asyncio.create_task(hold()) for _ in range(2)]
        await asyncio.sleep(0.05)
        with pytest.raises(Waiting) as refused:
            await database.ping()
        assert refused.value.code == "database_unavailable"
        waiting = asyncio.create_task(database.ping())
        await asyncio.sleep(0)
        released.set()
        await asyncio.gather(waiting, *holding)
        holding[0].cancel()
        await asyncio.gather(*(database.ping() for _ in range(20)))


async def test_a_caller_that_is_cancelled_gives_its_place_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgewright.adapters.database.engine.engine.CONNECTIONS", 1)
    async with open_database(f"sqlite:///{tmp_path}/some.db") as database:
        for _ in range(3):

            async def hold() -> None:
                async with database.read():
                    await asyncio.Event().wait()

            holding = asyncio.create_task(hold())
            await asyncio.sleep(0.01)
            holding.cancel()
            with pytest.raises(asyncio.CancelledError):
                await holding
        await asyncio.wait_for(database.ping(), 5)
