"""A disk that is slow: everything takes longer, readers wait for nobody, and nothing is done twice."""

import asyncio
import sqlite3
import threading
from functools import partial
from pathlib import Path

import pytest
from failing import slow_disk
from failing.caller import Caller, timed
from failing.storage import FaultyStorage
from sqlalchemy import text

from edgewright.adapters.database.engine.engine import Database, open_database
from tools.chaos.requests import stamp_of

pytestmark = pytest.mark.timeout(300)

SLOW_SECONDS = 0.3
FOR_EVER = 3600.0


class Misfortune(Exception):
    """Ends a transaction without a commit."""


async def test_only_the_end_of_what_was_written_waits_and_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[threading.Thread] = []
    monkeypatch.setattr(slow_disk, "wait_for", lambda _what: waits.append(threading.current_thread()))
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=slow_disk.SlowConnection))
    async with open_database(f"sqlite:///{tmp_path}/some.db") as database:
        await database.migrate()
        waits.clear()
        await put(database, "kept")
        assert len(waits) == 1 and waits[0] is not threading.main_thread()

        with pytest.raises(Misfortune):
            await put(database, "given up", Misfortune())
        async with database.read() as connection:
            assert list(await connection.scalars(text("SELECT name FROM names"))) == ["kept"]
        assert len(waits) == 1, "the reader had the connection on which something was given up"


async def test_slow_disk_delays_and_doubles_nothing(faulty: FaultyStorage, caller: Caller) -> None:
    before = await caller.cluster("before-slow")
    edge = await caller.attach(before)
    with faulty.slow("git", SLOW_SECONDS), faulty.slow("database", SLOW_SECONDS):
        places = [f"default/slow/k{number}" for number in range(5)]
        (created, seconds), changed, puts = await asyncio.gather(
            timed(caller.create("during-slow")),
            caller.change(before, "changed-slow"),
            asyncio.gather(*(caller.put_secret(before, place, "new") for place in places)),
        )
        assert seconds >= SLOW_SECONDS
        assert (created.status_code, changed.status_code) == (201, 200)
        assert {put.status_code for put in puts} <= {204, 503}
        assert (await edge.beat()).status_code == 200
        assert (await caller.get("/readyz")).status_code == 200
        await caller.until_ready(created.json()["uuid"], seconds=90)
    again = await asyncio.gather(*(caller.put_secret(before, place, "new") for place in places))
    assert {put.status_code for put in again} == {204}
    for first, second in zip(puts, again, strict=True):
        if first.status_code == 204:
            assert first.headers["Edgewright-Commit"] == second.headers["Edgewright-Commit"]


async def test_readers_do_not_wait_for_a_database_that_cannot_finish_writing(
    faulty: FaultyStorage, caller: Caller
) -> None:
    before = await caller.cluster("before-standstill")
    edge = await caller.attach(before)
    with faulty.slow("database", FOR_EVER):
        changing = asyncio.create_task(caller.change(before, "changed-standstill"))
        await caller.until(before, lambda shown: faulty.waits_for("database"), seconds=30)
        assert stamp_of(await caller.show(before)) == "before-standstill", "not written, not shown"
        for path in ("/v1/cluster", f"/v1/cluster/{before}/status", f"/v1/cluster/{before}/timeline", "/readyz"):
            assert (await caller.get(path)).status_code == 200, path
        assert (await edge.beat()).status_code == 200
        assert not changing.done()
    assert (await changing).status_code == 200
    await caller.until(before, lambda shown: stamp_of(shown) == "changed-standstill", seconds=30)


async def put(database: Database, name: str, misfortune: Exception | None = None) -> None:
    async with database.write() as connection:
        await connection.execute(text("CREATE TABLE IF NOT EXISTS names (name TEXT)"))
        await connection.execute(text("INSERT INTO names VALUES (:name)"), {"name": name})
        if misfortune:
            raise misfortune
