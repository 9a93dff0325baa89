"""The database itself: its schema, its transactions, its clock, and what its complaints become."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from database_stores import Store
from sqlalchemy import Column, Connection, Integer, MetaData, Table, bindparam, insert, select, text
from sqlalchemy.dialects.postgresql.asyncpg import AsyncAdapt_asyncpg_dbapi
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from edgewright.adapters.database.config_store.config_store import SqlConfigStore
from edgewright.adapters.database.edges.edge_reports import SqlEdgeReports
from edgewright.adapters.database.engine.engine import open_database
from edgewright.adapters.database.engine.errors import translate
from edgewright.adapters.database.migrations import OtherSchema
from edgewright.adapters.database.tables import clusters, gateway_presence, metadata
from edgewright.domain.cluster import Condition, ConditionStatus, ConditionType, Phase, StepName, StepState
from edgewright.domain.default_entries import default_entries
from edgewright.domain.projection import StepRecord
from edgewright.errors import Invalid, Stalled, Waiting
from edgewright.ports.clusters import ClusterFilter
from edgewright.ports.config_store import NewEntry


def differences(connection: Connection) -> list[Any]:
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    found: list[Any] = compare_metadata(context, metadata)
    return found


def made_of(path: Path) -> set[tuple[Any, ...]]:
    """Every column, index and trigger of a SQLite file, without the words they were made with."""
    with sqlite3.connect(path) as connection:
        named = connection.execute(
            "SELECT type, name, tbl_name FROM sqlite_master WHERE tbl_name != 'alembic_version'"
        ).fetchall()
        found: set[tuple[Any, ...]] = set(named)
        for kind, name, _ in named:
            pragma = {"table": "table_info", "index": "index_xinfo"}.get(kind)
            if pragma:
                found |= {(name, *row) for row in connection.execute(f"PRAGMA {pragma}('{name}')")}
    return found


async def test_migrations_lead_to_the_tables_of_the_code(empty_database_url: str) -> None:
    async with open_database(empty_database_url) as database:
        await database.migrate()
        async with database.read() as connection:
            assert await connection.run_sync(differences) == []


async def test_migrations_lead_to_the_same_file_as_the_tables_of_the_code(tmp_path: Path) -> None:
    migrated, created = tmp_path / "migrated.db", tmp_path / "created.db"
    async with open_database(f"sqlite:///{migrated}") as database:
        await database.migrate()
    async with open_database(f"sqlite:///{created}") as database, database.write() as connection:
        await connection.run_sync(metadata.create_all)
    assert made_of(migrated) == made_of(created)


async def test_processes_that_migrate_at_once_do_not_disturb_each_other(empty_database_url: str) -> None:
    url = empty_database_url
    async with open_database(url) as one, open_database(url) as two, open_database(url) as three:
        await asyncio.gather(one.migrate(), two.migrate(), three.migrate())
        await three.migrate()
        async with three.read() as connection:
            assert await connection.scalar(text("SELECT count(*) FROM alembic_version")) == 1
            assert await connection.scalar(text("SELECT count(*) FROM feed")) == 1


async def test_processes_that_start_first_at_once_install_each_entry_once(empty_database_url: str) -> None:
    new = [NewEntry(entry.app, entry.object, entry.klass, entry.body) for entry in default_entries("Acme")]

    async def start() -> int:
        async with open_database(empty_database_url) as database:
            await database.migrate()
            return await SqlConfigStore(database).install(new)

    installed = await asyncio.gather(*(start() for _ in range(5)))
    assert sum(installed) == len(new)
    async with open_database(empty_database_url) as database, database.read() as connection:
        assert await connection.scalar(text("SELECT count(*) FROM entries")) == len(new)


async def test_sqlite_is_durable_and_checks_references(sqlite_store: str) -> None:
    async with open_database(sqlite_store) as database, database.read() as connection:
        found = [
            await connection.scalar(text(f"PRAGMA {name}"))
            for name in ("journal_mode", "synchronous", "foreign_keys")
        ]
    assert found == ["wal", 2, 1]


async def test_a_failed_transaction_leaves_nothing(store: Store) -> None:
    moment = datetime.now(UTC)
    with pytest.raises(ZeroDivisionError):
        async with store.database.write() as connection:
            row = {"id": 1, "listening_since": moment, "listening_until": moment}
            await connection.execute(insert(gateway_presence).values(**row))
            _ = 1 / 0
    async with store.database.read() as connection:
        assert (await connection.execute(select(gateway_presence))).all() == []


async def test_a_reader_sees_one_state_and_is_not_kept_waiting(two: tuple[Store, Store]) -> None:
    reading, writing = two
    async with reading.database.read() as connection:
        before = await connection.scalar(text("SELECT count(*) FROM clusters"))
        await asyncio.wait_for(writing.create(), timeout=20)
        assert await connection.scalar(text("SELECT count(*) FROM clusters")) == before


async def test_a_look_up_sees_what_is_committed_and_keeps_nothing_open(two: tuple[Store, Store]) -> None:
    reading, writing = two
    names = select(clusters.c.name).where(clusters.c.name_key.startswith(bindparam("first"))).order_by("name")
    for name in ("line-1", "line-2"):
        await asyncio.wait_for(writing.create(name), timeout=20)
        last = await reading.database.look_up(names, {"first": "line"})
        assert [*last[-1]] == [name]
    await asyncio.wait_for(reading.create("line-3"), timeout=20)
    found = await writing.database.look_up(names, {"first": "line"})
    assert [name for [name] in found] == ["line-1", "line-2", "line-3"], "the connection that looked up has committed"


async def test_a_look_up_that_fails_says_why_and_spoils_nothing(store: Store) -> None:
    missing = select(Table("missing", MetaData(), Column("id", Integer)))
    with pytest.raises(DBAPIError):
        await store.database.look_up(missing, {})
    assert await store.database.look_up(select(clusters.c.uuid), {}) == []


async def test_a_cancelled_writer_leaves_the_turn_to_the_next(store: Store) -> None:
    begun = asyncio.Event()

    async def dawdle() -> None:
        async with store.database.write():
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(dawdle())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(store.create(), timeout=20)


async def test_moments_come_back_as_they_went_in_whatever_their_zone(store: Store) -> None:
    elsewhere = datetime.fromisoformat("2026-03-01T14:30:00.123456+02:00")
    async with store.database.write() as connection:
        row = {"id": 1, "listening_since": elsewhere, "listening_until": elsewhere}
        await connection.execute(insert(gateway_presence).values(**row))
        back = await connection.scalar(select(gateway_presence.c.listening_since))
    assert back == elsewhere
    assert back.utcoffset() == timedelta(0)


async def test_a_moment_without_zone_is_refused(store: Store) -> None:
    with pytest.raises(Exception, match="without a time zone"):
        async with store.database.read() as connection:
            await connection.execute(select(clusters.c.uuid).where(clusters.c.created_at > datetime(2026, 1, 1)))


async def test_the_clock_is_the_databases_own(store: Store) -> None:
    assert abs(await store.edge_reports.now() - datetime.now(UTC)) < timedelta(seconds=5)


async def test_a_sqlite_file_that_is_locked_is_waited_for(sqlite_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgewright.adapters.database.engine.engine.LOCK_WAIT_SECONDS", 0)
    async with open_database(sqlite_store) as busy, open_database(sqlite_store) as impatient:
        reports = SqlEdgeReports(impatient)
        async with busy.write():
            with pytest.raises(Waiting) as refusal:
                await reports.keep_listening()
        await reports.keep_listening()
    assert refusal.value.code == "database_unavailable"
    assert refusal.value.retry_after > 0


async def test_writers_wait_together_for_a_sqlite_file_that_is_locked(
    sqlite_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgewright.adapters.database.engine.engine.LOCK_WAIT_SECONDS", 2)
    async with open_database(sqlite_store) as busy, open_database(sqlite_store) as patient:
        reports, loop = SqlEdgeReports(patient), asyncio.get_running_loop()
        async with busy.write():
            began = loop.time()
            refusals = await asyncio.gather(*(reports.keep_listening() for _ in range(20)), return_exceptions=True)
            assert 2 <= loop.time() - began < 20, "not 2 s for each of them"
            late = asyncio.create_task(reports.keep_listening())
            done, _ = await asyncio.wait([late], timeout=0.5)
            assert not done, "who comes later has his own two seconds"
        await late
        await reports.keep_listening()
    assert {getattr(refusal, "code", refusal) for refusal in refusals} == {"database_unavailable"}


async def test_a_writer_that_hangs_does_not_keep_all_others_waiting(
    sqlite_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgewright.adapters.database.engine.engine.QUEUE_WAIT_SECONDS", 0.2)
    async with open_database(sqlite_store) as database:
        reports = SqlEdgeReports(database)
        async with database.write():
            with pytest.raises(Waiting) as refusal:
                await reports.keep_listening()
        await reports.keep_listening()
    assert refusal.value.code == "database_unavailable"


async def threads_gone() -> None:
    """The driver lets the thread of a connection that failed to open end by itself; the loop has to outlive it."""
    async with asyncio.timeout(20):
        while any("_connection_worker_thread" in thread.name for thread in threading.enumerate()):
            await asyncio.sleep(0.01)


async def test_a_database_out_of_reach_is_waited_for(tmp_path: Path) -> None:
    async with open_database(f"sqlite:///{tmp_path / 'missing' / 'edgewright.db'}") as database:
        with pytest.raises(Waiting) as refusal:
            await database.ping()
    await threads_gone()
    assert refusal.value.code == "database_unavailable"


async def test_messages_hold_no_credentials(unused_tcp_port: int) -> None:
    url = f"postgresql://keeper:s3cr3t@127.0.0.1:{unused_tcp_port}/edgewright?ssl=disable&password=s3cr3t"
    async with open_database(url) as database:
        with pytest.raises(Waiting) as refusal:
            await database.ping()
    assert refusal.value.code == "database_unavailable"
    assert "edgewright on 127.0.0.1" in refusal.value.detail
    assert not {"s3cr3t", "keeper"} & set(refusal.value.detail.replace(":", " ").replace("@", " ").split())


async def test_a_file_that_is_no_database_needs_a_person(tmp_path: Path) -> None:
    path = tmp_path / "edgewright.db"
    path.write_bytes(b"this is not a database, whatever its name says" * 50)
    async with open_database(f"sqlite:///{path}") as database:
        with pytest.raises(Stalled) as refusal:
            await database.ping()
    await threads_gone()
    assert refusal.value.code == "database_damaged"


def test_a_url_that_cannot_be_read_is_not_repeated() -> None:
    with pytest.raises(Invalid) as refusal:
        open_database("s3cr3t@nowhere")
    assert refusal.value.code == "database_url_invalid"
    assert "s3cr3t" not in refusal.value.detail
    assert refusal.value.__suppress_context__


def test_waiting_for_a_connection_is_waiting() -> None:
    meaning = translate(PoolTimeout("QueuePool limit"), "edgewright.db")
    assert isinstance(meaning, Waiting)


def test_a_connection_that_the_driver_has_just_lost_is_waited_for() -> None:
    """asyncpg does not call it closed yet, and has no SQLSTATE for it."""
    lost: Callable[[str, None], Exception] = AsyncAdapt_asyncpg_dbapi.InternalClientError
    complaint = lost("cannot switch to state 11", None)
    meaning = translate(DBAPIError("SELECT 1", {}, complaint), "edgewright")
    assert isinstance(meaning, Waiting)


def test_a_text_that_no_database_can_hold_is_the_callers_mistake() -> None:
    """PostgreSQL knows no NUL."""
    complaint = Exception("invalid byte sequence")
    complaint.sqlstate = "22021"  # type: ignore[attr-defined] # what asyncpg's errors have
    meaning = translate(DBAPIError("SELECT 1", {}, complaint), "edgewright")
    assert isinstance(meaning, Invalid)
    assert meaning.code == "text_invalid"


def test_a_fault_of_the_program_stays_one() -> None:
    assert translate(ValueError("oops"), "edgewright.db") is None


OF_LATER_MIGRATIONS = (
    *("blocked", "synced", "healthy", "trouble"),
    *("nonce", "nonce_breaks", "nonce_broken_at", "forked_at"),
    *("centre_url", "centre_problem", "proven_url", "centre_ca"),
    *("proposed_fingerprint", "proposed_not_after", "proposed_at", "proposed_pem"),
    *("event_room", "event_room_at", "events_omitted", "drift", "drift_lost"),
    *("asks_flux", "asks_flux_since"),
    *("purge", "purged", "purge_problem"),
    "secrets_commit",
    "rendered_commit",
    *("components", "upgrading", "anchor"),
)


async def test_failing_steps_of_an_earlier_version_are_taken_over(tmp_path: Path) -> None:
    """The columns are newer than the projections: a workflow that has nothing new to say publishes none for years."""
    url = f"sqlite:///{tmp_path / 'earlier.db'}"
    async with open_database(url) as database:
        await database.migrate()
        store = Store.on(database)
        failing = (StepRecord(name=StepName.POPULATE_REPOSITORY, state=StepState.BLOCKED, error="No chart."),)
        for name, steps in (("one", failing), ("two", ())):
            cluster = await store.create(name)
            blocked = Condition(
                type=ConditionType.BLOCKED,
                status=ConditionStatus.TRUE if steps else ConditionStatus.FALSE,
                reason="TemplateInvalid",
                since=store.clock(),
            )
            await store.publish(cluster, Phase.COMMISSIONING, ready=False, steps=steps, conditions=(blocked,))
        shown = await store.directory.page(ClusterFilter(sort="-trouble"))
        async with database.write() as connection:
            for statement in (
                "DROP INDEX ix_clusters_failing",
                "ALTER TABLE clusters DROP COLUMN failing",
                "ALTER TABLE clusters DROP COLUMN failing_step",
                "DROP INDEX ix_clusters_underway",
                "ALTER TABLE clusters DROP COLUMN underway",
                "DROP TABLE notifications",
                "DROP TABLE webhooks",
                "ALTER TABLE credentials DROP COLUMN rotation_asked_at",
                "DROP INDEX ix_clusters_reseal_due",
                "ALTER TABLE clusters DROP COLUMN reseal_due_at",
                "ALTER TABLE clusters DROP COLUMN resealing",
                "ALTER TABLE staged_changes DROP COLUMN replaces",
                "ALTER TABLE staged_changes DROP COLUMN template",
                "ALTER TABLE staged_changes DROP COLUMN creates_namespace",
                "DROP TABLE resealing_secrets",
                "DROP TABLE resealings",
                "DROP TABLE last_sweep",
                "DROP TABLE applied_verbs",
                "DROP INDEX ix_clusters_trouble",
                "DROP INDEX ix_clusters_upgrading",
                "DROP TABLE upgrades",
                *(f"ALTER TABLE clusters DROP COLUMN {column}" for column in OF_LATER_MIGRATIONS),
                "UPDATE clusters SET waiting_for = ''",
                "UPDATE alembic_version SET version_num = '0001'",
            ):
                await connection.execute(text(statement))
        await database.migrate()
        assert (await store.census.count()).failing == {(StepState.BLOCKED, StepName.POPULATE_REPOSITORY): 1}
        assert [await store.directory.name_of(one) for one in await store.directory.underway()] == ["one"]
        assert await store.directory.page(ClusterFilter(sort="-trouble")) == shown
        assert [(line.name, line.blocked) for line in shown.items] == [("two", False), ("one", True)]


async def test_a_program_of_another_version_than_the_schema_is_told_to_leave(tmp_path: Path) -> None:
    async with open_database(f"sqlite:///{tmp_path / 'other.db'}") as database:
        await database.migrate()
        await database.demand_schema()
        for version, code in (("9999", "schema_newer"), ("0001", "schema_older")):
            async with database.write() as connection:
                await connection.execute(
                    text("UPDATE alembic_version SET version_num = :version"), {"version": version}
                )
            with pytest.raises(OtherSchema) as refused:
                await database.demand_schema()
            assert refused.value.code == code
            assert version in refused.value.detail
        async with database.write() as connection:
            await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        with pytest.raises(OtherSchema, match="9999, of a newer Edgewright"):
            await database.migrate()
