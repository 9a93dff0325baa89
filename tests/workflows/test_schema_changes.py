"""A newer Edgewright migrates the database under a worker that runs."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest
from centre import WorkflowCentre, eventually
from sqlalchemy import text

import worker
from edgewright.adapters.database.migrations import OtherSchema
from edgewright.settings import Settings


async def test_a_worker_that_runs_leaves_once_its_database_has_a_newer_schema(
    idle_centre: WorkflowCentre, temporal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "SCHEMA_SECONDS", 0.05)
    monkeypatch.setattr(worker, "spare_what_is_loaded", lambda: None)  # what the tests have loaded is not its own
    ready, stop = tmp_path / "ready", asyncio.Event()
    settings = Settings(home=tmp_path, temporal_address=temporal, ready_file=ready)
    running = asyncio.create_task(worker.run(settings, stop))
    try:
        await eventually(lambda: asyncio.to_thread(lambda: running.done() or ready.exists()))
        await idle_centre.create("before")
        assert not running.done(), "it works as long as the schema is its own"
        async with idle_centre.database.write() as connection:
            await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        with pytest.raises(OtherSchema, match="The database has the schema 9999, of a newer Edgewright"):
            await asyncio.wait_for(running, timeout=60)
        assert stop.is_set()
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError, OtherSchema):
            await running
