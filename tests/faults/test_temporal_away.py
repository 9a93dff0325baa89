"""Temporal hangs or is gone: everything that is only written is taken, everything else says so; nothing is lost."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from centre import eventually
from embedded import EmbeddedEdgewright
from failing.caller import Caller, problem_code
from failing.records import Records, running
from failing.temporal import MortalTemporal

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def temporal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MortalTemporal]:
    temporal = MortalTemporal(tmp_path_factory.mktemp("temporal"))
    temporal.start()
    yield temporal
    temporal.end()


@pytest.fixture(scope="module")
def centre(tmp_path_factory: pytest.TempPathFactory, temporal: MortalTemporal) -> EmbeddedEdgewright:
    variables = {
        "EDGEWRIGHT_DEMO": "0",
        "EDGEWRIGHT_SWEEP_SECONDS": "2",
        "EDGEWRIGHT_TEMPORAL_ADDRESS": temporal.address,
    }
    return EmbeddedEdgewright(tmp_path_factory.mktemp("away") / "home", variables)


@pytest.fixture(scope="module")
def its_records(centre: EmbeddedEdgewright) -> Iterator[Records]:
    with running(centre) as records:
        yield records


@pytest.fixture
async def operator(centre: EmbeddedEdgewright, its_records: Records) -> AsyncIterator[Caller]:
    caller = Caller(centre, its_records)
    yield caller
    await caller.close()


@pytest.mark.parametrize("how", ["stopped", "killed"])
async def test_what_was_answered_meanwhile_is_done_afterwards(
    temporal: MortalTemporal, operator: Caller, how: str
) -> None:
    before, going, removed = [await operator.cluster(f"{name}-{how}") for name in ("before", "going", "again")]
    edge = await operator.attach(before)
    with temporal.away(how):
        ready = await operator.get("/readyz")
        assert (ready.status_code, ready.json()["degraded"]) == (200, ["temporal"])
        taken = [
            await operator.create(f"during-{how}"),
            await operator.change(before, f"changed-{how}"),
            await operator.delete(going),
            await operator.recreate(removed, wish=f"recreate {how}"),
            await edge.beat(),
        ]
        assert [answer.status_code for answer in taken] == [201, 200, 202, 202, 200]
        during = str(taken[0].json()["uuid"])

        put, pause = await asyncio.gather(
            operator.put_secret(before, "default/db/password", "new"),
            operator.post(f"/v1/cluster/{before}/pause", {"reason": "maintenance"}),
        )
        assert put.status_code == 204, "the gateway commits secrets itself"
        assert (pause.status_code, problem_code(pause)) == (503, "temporal_unavailable")
        assert pause.json()["hint"] and pause.headers["Retry-After"] == "2"

        known = await operator.get(f"/v1/cluster/{before}/ready")
        assert known.status_code == 200
        assert known.json()["as_of"], "an answer of the projection says how old it is"
        waiting = await operator.get(f"/v1/cluster/{during}/ready")
        assert (waiting.status_code, problem_code(waiting)) == (503, "not_ready")
        assert "has not begun" in waiting.json()["detail"]
        assert (await operator.get("/v1/cluster")).status_code == 200
        refs = await operator.get(f"/uuid/{before}/info/refs", service="git-upload-pack")
        assert refs.status_code == 200

    async def whole() -> bool:
        return bool((await operator.get("/readyz")).json()["degraded"] == [])

    await eventually(whole, seconds=60)
    await operator.until_ready(during)
    await operator.until_ready(removed)
    await operator.until_gone(going)
    again = await operator.put_secret(before, "default/db/password", "new")
    assert (again.status_code, again.headers["Edgewright-Commit"]) == (204, put.headers["Edgewright-Commit"])
    secrets = (await operator.get(f"/v1/cluster/{before}/secret")).json()["items"]
    assert len(secrets) == 1
    paused = (await operator.show(before))["pause"]["paused"]
    for verb, wanted in (("pause", True), ("resume", False)):
        answer = await operator.post(f"/v1/cluster/{before}/{verb}", {"reason": "maintenance"})
        assert (answer.status_code, answer.json()["pause"]["paused"]) == (200, wanted)
    assert not paused, "what was answered 503 was not kept for later"
