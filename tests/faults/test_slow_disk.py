"""A disk that is slow: everything takes longer, readers wait for nobody, and nothing is done twice."""

import asyncio

import pytest
from failing.caller import Caller
from failing.storage import FaultyStorage

pytestmark = pytest.mark.timeout(300)

SLOW_SECONDS = 0.3
FOR_EVER = 3600.0


async def test_slow_disk_delays_and_doubles_nothing(faulty: FaultyStorage, caller: Caller) -> None:
    before = await caller.cluster("before-slow")
    edge = await caller.attach(before)
    with faulty.slow("git", SLOW_SECONDS), faulty.slow("database", SLOW_SECONDS):
        places = [f"default/slow/k{number}" for number in range(5)]
        created, changed, *puts = await asyncio.gather(
            caller.create("during-slow"),
            caller.change(before, "changed-slow"),
            *(caller.put_secret(before, place, "new") for place in places),
        )
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
        assert (await caller.show(before))["values"] == {"stamp": "before-standstill"}, "not written, not shown"
        for path in ("/v1/cluster", f"/v1/cluster/{before}/status", f"/v1/cluster/{before}/timeline", "/readyz"):
            assert (await caller.get(path)).status_code == 200, path
        assert (await edge.beat()).status_code == 200
        assert not changing.done()
    assert (await changing).status_code == 200
    await caller.until(before, lambda shown: shown["values"] == {"stamp": "changed-standstill"}, seconds=30)
