"""Git's disk hangs or is slow: nobody else waits for it, operators get their way, and nothing is done twice."""

import asyncio

import httpx
import pytest
from centre import eventually
from failing.caller import Caller, problem_code, timed
from failing.storage import FaultyStorage

pytestmark = pytest.mark.timeout(300)

FOR_EVER = 3600.0
VERB_SECONDS = 10.0
"""What an operator's verb takes at most; the workflow says after as long that it was taken, but not applied."""


async def test_operators_verbs_are_answered_while_ten_secret_writes_hang(
    faulty: FaultyStorage, caller: Caller
) -> None:
    paused, recreated, deleted, edged = [
        await caller.cluster(f"hanging-{name}") for name in ("paused", "recreated", "deleted", "edged")
    ]
    await caller.attach(edged)
    assert (await caller.put_secret(edged, "default/hanging/old", "old")).status_code == 204
    with faulty.slow("git", FOR_EVER):
        places = [f"default/hanging/k{number}" for number in range(10)]
        puts = [asyncio.create_task(caller.put_secret(paused, place, "new")) for place in places]
        other = asyncio.create_task(caller.put_secret(recreated, "default/hanging/k", "new", calm=False))
        await caller.until(paused, lambda shown: faulty.waits_for("git"), seconds=30)

        answers = [
            await timed(caller.post(f"/v1/cluster/{paused}/pause", {"reason": "its disk hangs"})),
            await timed(caller.post(f"/v1/cluster/{paused}/resume")),
            await timed(caller.recreate(recreated, wish="recreate while Git hangs")),
            await timed(caller.delete(deleted, force=True)),
            await timed(caller.delete(edged)),
        ]
        answers.append(await skipped(caller, edged, "remove_workloads"))
        assert [answer.status_code for answer, _ in answers] == [200, 200, 202, 202, 202, 200]
        assert max(seconds for _, seconds in answers) < VERB_SECONDS
        assert not any(put.done() for put in puts), "they still hang"
        assert (await caller.get("/v1/cluster")).status_code == 200

        for put in await asyncio.gather(*puts):
            assert (put.status_code, problem_code(put)) == (503, "commit_unconfirmed")
        assert (await other).status_code in {409, 503}
        states = {step["name"]: step["state"] for step in (await caller.show(edged))["steps"]}
        assert states["remove_workloads"] == "skipped"

    again = await asyncio.gather(*(caller.put_secret(paused, place, "new") for place in places))
    assert {put.status_code for put in again} == {204}
    await caller.until_ready(recreated)
    await caller.until_gone(deleted)
    assert (await caller.delete(edged, force=True)).status_code == 202
    await caller.until_gone(edged)


async def skipped(caller: Caller, cluster: str, step: str) -> tuple[httpx.Response, float]:
    """The answer to skipping a step, once its turn has come."""
    answers: list[tuple[httpx.Response, float]] = []

    async def its_turn() -> bool:
        skip = caller.post(f"/v1/cluster/{cluster}/step/{step}/skip", {"reason": "its disk hangs"})
        answers.append(await timed(skip))
        return answers[-1][0].status_code != 409

    await eventually(its_turn, seconds=30)
    return answers[-1]
