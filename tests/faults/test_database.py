"""The database cannot be written: what is answered meanwhile, and that what was asked for happens once, later."""

import asyncio

import pytest
from centre import eventually
from failing.caller import Caller, problem_code, timed
from failing.storage import DATABASE, FaultyStorage

from edgewright.adapters.database.engine.engine import LOCK_WAIT_SECONDS

pytestmark = pytest.mark.timeout(300)

TOGETHER = 6
"""Requests at once: more than could be refused one after the other before a caller loses patience."""


async def readyz_says(caller: Caller, expected: tuple[int, str, str]) -> bool:
    """``expected``: status, code, and what is out of reach."""
    answer = await caller.get("/readyz")
    return (answer.status_code, problem_code(answer), answer.json().get("where", "")) == expected


async def test_full_disk_refuses_changes_and_reads_go_on(faulty: FaultyStorage, caller: Caller) -> None:
    before, going = await caller.cluster("before-full"), await caller.cluster("going-full")
    edge = await caller.attach(before)
    with faulty.full(DATABASE):
        create, put = await asyncio.gather(
            caller.create("during-full"), caller.put_secret(before, "default/db/password", "new")
        )
        patch, delete = await asyncio.gather(caller.change(before, "changed-full"), caller.delete(going))
        for refused in (create, put, patch, delete):
            assert (refused.status_code, problem_code(refused)) == (503, "disk_full")
            assert refused.json()["hint"] == "Free space on its disk; everything goes on by itself."
            assert refused.headers["Retry-After"] == "10"
        assert (await edge.beat()).status_code == 200, "a sign of life is kept until it can be written"
        listed = await caller.get("/v1/cluster")
        assert listed.status_code == 200
        assert not [item for item in listed.json()["items"] if item["name"] == "during-full"]
        assert (await caller.get(f"/v1/cluster/{before}")).json()["ready"]
        refs = await caller.get(f"/uuid/{before}/info/refs", service="git-upload-pack")
        assert refs.status_code == 200
        await eventually(lambda: readyz_says(caller, (503, "not_serving", "database")))
    await eventually(lambda: readyz_says(caller, (200, "", "")))

    create, put = await asyncio.gather(
        caller.create("during-full"), caller.put_secret(before, "default/db/password", "new")
    )
    patch, delete = await asyncio.gather(caller.change(before, "changed-full"), caller.delete(going))
    assert [answer.status_code for answer in (create, put, patch, delete)] == [201, 204, 200, 202]
    await caller.until_ready(create.json()["uuid"])
    await caller.until_gone(going)


async def test_locked_database_keeps_nobody_waiting_for_long(faulty: FaultyStorage, caller: Caller) -> None:
    before = await caller.cluster("before-lock")
    edge = await caller.attach(before)
    names = [f"during-lock-{number}" for number in range(TOGETHER)]
    with faulty.locked_database():
        creations = [asyncio.create_task(timed(caller.create(name))) for name in names]
        put = asyncio.create_task(timed(caller.put_secret(before, "default/db/password", "new")))
        assert (await edge.beat()).status_code == 200
        assert (await caller.get("/v1/cluster")).status_code == 200
        assert (await caller.get("/readyz")).json()["status"] == "ok"
        assert not any(asking.done() for asking in creations), "readers wait for no writer"
        for refused, seconds in await asyncio.gather(*creations, put):
            assert (refused.status_code, problem_code(refused)) == (503, "database_unavailable")
            assert refused.headers["Retry-After"] == "1"
            assert seconds < LOCK_WAIT_SECONDS + 10
    made = [await caller.create(name) for name in names]
    put_again = await caller.put_secret(before, "default/db/password", "new")
    assert [answer.status_code for answer in (*made, put_again)] == [201] * TOGETHER + [204]
    for answer in made:
        await caller.until_ready(answer.json()["uuid"])
