"""Rows of an earlier version are all there after the migration, and new columns say what is true of them."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest_asyncio
from alembic import command
from alembic.config import Config
from database_stores import DatabaseClock, Store
from sqlalchemy import Connection, Table, insert, inspect, select

from edgewright.adapters.database import migrations
from edgewright.adapters.database.engine.engine import Database, open_database
from edgewright.adapters.database.tables import metadata
from edgewright.domain.cluster import Condition, ConditionStatus, ConditionType, Phase, StepName, StepState
from edgewright.domain.projection import StepRecord
from edgewright.ports.clusters import ClusterFilter

EARLIER = "0007"
"""The last schema without what lists say of clusters."""
BEGINS_ANEW = {"turn", "event_room", "event_room_at"}
"""Columns that no earlier version could fill, and in which nothing means "as before"."""

Rows = dict[str, list[dict[str, Any]]]


def migrate_to(connection: Connection, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def condition(kind: ConditionType, status: ConditionStatus, reason: str, message: str = "") -> Condition:
    return Condition(type=kind, status=status, reason=reason, message=message, since=DatabaseClock()())


async def populate(store: Store) -> None:
    """Clusters in every kind of trouble and in none, one that is gone, and what comes with them."""
    heard = condition(ConditionType.AVAILABLE, ConditionStatus.TRUE, "Heard")
    synced = condition(ConditionType.SYNCED, ConditionStatus.TRUE, "Applied")
    said: dict[str, Sequence[Condition]] = {
        "well": (heard, synced),
        "wrong": (heard, condition(ConditionType.SYNCED, ConditionStatus.FALSE, "ApplyFailed", "No such chart.")),
        "silent": (synced, condition(ConditionType.AVAILABLE, ConditionStatus.FALSE, "LeaseExpired", "Not heard.")),
        "stuck": (condition(ConditionType.BLOCKED, ConditionStatus.TRUE, "TemplateInvalid", "No chart."),),
        "paused": (heard, synced, condition(ConditionType.PAUSED, ConditionStatus.TRUE, "Asked")),
    }
    for name, conditions in said.items():
        stuck = (StepRecord(name=StepName.POPULATE_REPOSITORY, state=StepState.BLOCKED, error="No chart."),)
        cluster = await store.create(name)
        await store.publish(
            cluster,
            Phase.COMMISSIONING if name == "stuck" else Phase.ACTIVE,
            ready=name != "stuck",
            steps=stuck if name == "stuck" else (),
            conditions=tuple(conditions),
        )
    await store.create("not-begun")


async def rows_of(database: Database, tables: Sequence[Table]) -> Rows:
    async with database.read() as connection:
        found: Rows = {}
        for table in tables:
            order = list(table.primary_key.columns)
            rows = await connection.execute(select(table).order_by(*order))
            found[table.name] = [{column.key: row._mapping[column] for column in table.columns} for row in rows]
        return found


def write_as_earlier(connection: Connection, rows: Rows) -> None:
    """The same rows without what the earlier schema has no column for."""
    looked = inspect(connection)
    for table in metadata.sorted_tables:
        if not looked.has_table(table.name):
            continue
        there = {column["name"] for column in looked.get_columns(table.name)}
        known = {column.key for column in table.columns if column.name in there}
        if table.name == "feed":
            connection.execute(table.delete())  # a migration has written its row
        for row in rows[table.name]:
            connection.execute(insert(table).values({key: value for key, value in row.items() if key in known}))


@pytest_asyncio.fixture
async def written(tmp_path: Path) -> AsyncIterator[Rows]:
    """What this version writes of a population."""
    async with open_database(f"sqlite+aiosqlite:///{tmp_path / 'present.db'}") as database:
        await database.migrate()
        await populate(Store.on(database))
        yield await rows_of(database, metadata.sorted_tables)


async def test_rows_of_an_earlier_schema_become_what_this_version_would_have_written(
    empty_database_url: str, written: Rows
) -> None:
    async with open_database(empty_database_url) as database:
        async with database.write() as connection:
            await connection.run_sync(migrate_to, EARLIER)
            await connection.run_sync(write_as_earlier, written)
        await database.migrate()
        migrated = await rows_of(database, metadata.sorted_tables)
        for table, rows in written.items():
            assert without(rows) == without(migrated[table]), table
        page = await Store.on(database).directory.page(ClusterFilter(sort="trouble"))
    assert [line.name for line in page.items] == ["stuck", "wrong", "silent", "paused", "not-begun", "well"]


def without(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in BEGINS_ANEW} for row in rows]
