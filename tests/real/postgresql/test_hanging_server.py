"""A PostgreSQL that does not answer keeps nobody waiting, and nobody has to be restarted when it answers again."""

import asyncio
import time
from collections.abc import AsyncIterator

import asyncpg  # type: ignore[import-untyped]  # it ships no types
import pytest
import pytest_asyncio
from postgresql_server import PostgreSQL
from sqlalchemy import text

from edgewright.adapters.database.engine import engine, postgresql_engine
from edgewright.adapters.database.engine.engine import Database, open_database
from edgewright.errors import Waiting

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

SLACK = 20.0
"""Seconds that a busy machine may add to a time limit."""
TOGETHER = 40
"""More than there are connections."""


@pytest_asyncio.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with open_database(database_url) as opened:
        await opened.migrate()
        yield opened


async def refusal(asking: "asyncio.Future[None]") -> str:
    """The code with which a caller is refused."""
    with pytest.raises(Waiting) as refused:
        await asking
    return refused.value.code


async def test_everybody_is_refused_in_time_while_the_server_hangs(
    database: Database, postgresql: PostgreSQL
) -> None:
    await asyncio.gather(*(database.ping() for _ in range(TOGETHER)))
    postgresql.server.freeze()
    try:
        began = time.monotonic()
        asked = [asyncio.ensure_future(database.ping()) for _ in range(TOGETHER)]
        assert {await refusal(one) for one in asked} == {"database_unavailable"}
        limit = engine.CONNECTION_WAIT_SECONDS + postgresql_engine.PING_SECONDS + postgresql_engine.CONNECT_SECONDS
        assert time.monotonic() - began < limit + SLACK
    finally:
        postgresql.server.thaw()
    await asyncio.gather(*(database.ping() for _ in range(TOGETHER)))


async def test_a_transaction_that_the_server_forgets_is_cut_off(
    database: Database, postgresql: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "TRANSACTION_SECONDS", 1.0)
    began = time.monotonic()
    with pytest.raises(Waiting) as refused:
        async with database.write() as connection:
            await connection.execute(text("SELECT 1"))
            postgresql.server.freeze()
            try:
                await connection.execute(text("SELECT 1"))
            finally:
                assert time.monotonic() - began < SLACK
                postgresql.server.thaw()
    assert refused.value.code == "database_unavailable"
    await database.ping()


async def test_whoever_is_cancelled_while_the_server_hangs_is_gone_at_once(
    database: Database, postgresql: PostgreSQL
) -> None:
    async def ask() -> None:
        async with database.read() as connection:
            await connection.execute(text("SELECT pg_sleep(60)"))

    asking = asyncio.create_task(ask())
    while not int(
        postgresql.sql(
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(60)' AND wait_event = 'PgSleep'"
        )
    ):
        await asyncio.sleep(0.05)
    postgresql.server.freeze()
    try:
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(asking, SLACK)
    finally:
        postgresql.server.thaw()
    await database.ping()


async def test_sessions_that_died_with_the_server_are_opened_again(
    database: Database, postgresql: PostgreSQL
) -> None:
    await asyncio.gather(*(database.ping() for _ in range(TOGETHER)))
    assert postgresql.server.kill() > 1
    asked = [asyncio.ensure_future(database.ping()) for _ in range(TOGETHER)]
    assert {await refusal(one) for one in asked} == {"database_unavailable"}
    postgresql.server.start()
    await asyncio.gather(*(database.ping() for _ in range(TOGETHER)))


async def test_a_connection_that_was_lost_a_moment_ago_is_replaced(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stands in for the driver: between the loss and its own word of it there are only microseconds."""
    await database.ping()
    lost = [asyncpg.InternalClientError('cannot switch to state 11; protocol is in the "failed" state')]
    execute = asyncpg.Connection.execute

    async def execute_or_fail(self: asyncpg.Connection, query: str) -> str:
        if lost:
            raise lost.pop()
        return str(await execute(self, query))

    monkeypatch.setattr(asyncpg.Connection, "execute", execute_or_fail)
    await database.ping()
    assert not lost


async def test_a_long_transaction_has_its_time(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "TRANSACTION_SECONDS", 0.2)
    async with database.read(long=True) as connection:
        await connection.execute(text("SELECT pg_sleep(0.5)"))
    with pytest.raises(Waiting):
        async with database.read() as connection:
            await connection.execute(text("SELECT pg_sleep(30)"))
