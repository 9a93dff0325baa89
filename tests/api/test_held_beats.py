"""A heartbeat that is held back until something is wanted of its edge."""

import asyncio
import gc
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from fastapi.dependencies.utils import SolvedDependency
from gateway_centre import EdgeCredentials, GatewayCentre, gateway_centre
from reporting_agent import beat, certificate
from starlette.requests import Request
from structlog.testing import capture_logs

from api.agent_callers import AgentCaller
from api.auth import EdgeCaller
from api.connections.limits import ConnectionLimits
from api.held_beats import AT_ONCE, HeldBeats, Seat
from api.wanted_revisions import MOST_UNDER_WAY, THREADS, WantedRevisions
from edgewright.domain.events import EventKind
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.errors import Waiting
from edgewright.ports.audit import NewEvent
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.edge_access import EdgeOrders
from edgewright.ports.git_server import CommitMessage

BY_TEST = CommitMessage("Change files", "token:test")
LONG = 50.0


async def known(centre: GatewayCentre, edge: EdgeCredentials, **body: Any) -> dict[str, Any]:
    """What an agent sends that knows all that is wanted, and offers to wait."""
    told = await beat(centre, edge, wait=LONG, **body)
    offer: dict[str, Any] = {"wait": LONG, "wants_digest": told["wants_digest"], "revisions": told.get("revisions")}
    return {**body, **{name: value for name, value in offer.items() if value is not None}}


@asynccontextmanager
async def held(
    centre: GatewayCentre, edge: EdgeCredentials, **body: Any
) -> AsyncIterator["asyncio.Task[dict[str, Any]]"]:
    """A heartbeat whose answer is held back."""
    live = centre.app.state.live
    before = len(live.held_beats)
    task = asyncio.create_task(beat(centre, edge, **(body or await known(centre, edge))))
    try:
        async with asyncio.timeout(20):
            while len(live.held_beats) == before:
                await asyncio.sleep(0.01)
                assert not task.done(), task.result()
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def answered(task: "asyncio.Task[dict[str, Any]]") -> dict[str, Any]:
    return await asyncio.wait_for(task, 20)


async def put_secret(centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials) -> str:
    put = await admin.put(f"/v1/cluster/{edge.cluster}/secret/default/db/password", content=b"s3cret")
    assert put.status_code == 204, put.text
    return put.headers["Edgewright-Commit"]


async def test_a_committed_secret_is_told_at_once(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    await centre.client(edge.as_agent).put("/v1/agent/status", json={"kubeseal_cert": certificate()})
    async with held(centre, edge) as task:
        commit = await put_secret(centre, admin, edge)
        told = await answered(task)
    assert told["revisions"]["self-link"] == commit


async def test_a_push_is_told_as_well(centre: GatewayCentre, edge: EdgeCredentials) -> None:
    async with held(centre, edge) as task:
        head = await asyncio.to_thread(centre.git.head, edge.cluster)
        pushed = await asyncio.to_thread(
            lambda: centre.git.commit(edge.cluster, {"by-hand/a.yaml": b"{}"}, BY_TEST, expected_head=head)
        )
        await centre.ports.audit.append(event(edge.cluster, EventKind.GIT_PUSHED))
        assert (await answered(task))["revisions"]["self-link"] == pushed


async def test_new_charts_are_told_to_everybody(centre: GatewayCentre, edge: EdgeCredentials) -> None:
    other = await centre.register(await centre.create("other"), uid="uid-2")
    put = centre.git.commit
    first = await asyncio.to_thread(lambda: put(REPOSITORY_HELM_CHARTS, {"a": b"1"}, BY_TEST, expected_head=None))
    await asyncio.sleep(0.5)  # a shared answer lives that long
    async with held(centre, edge) as one, held(centre, other) as two:
        moved = await asyncio.to_thread(
            lambda: put(REPOSITORY_HELM_CHARTS, {"a": b"2"}, BY_TEST, expected_head=first)
        )
        for task in (one, two):
            assert (await answered(task))["revisions"]["helm-charts"] == moved


async def test_a_rotation_that_is_asked_for_is_told(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    flux = "0" * 64
    async with held(centre, edge, **await known(centre, edge, flux_sha256=flux)) as task:
        asked = await admin.post(f"/v1/cluster/{edge.cluster}/credential/rotate", json={"roles": ["agent"]})
        assert asked.status_code in {200, 202}, asked.text
        assert "agent" in (await answered(task))["rotate"]


async def test_an_acceptance_is_told(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    edge = await centre.register(await centre.create("manual", accept="manual"))
    async with held(centre, edge) as task:
        assert (await admin.post(f"/v1/cluster/{edge.cluster}/accept")).status_code == 200
        assert (await answered(task))["state"] == "active"


async def test_a_credential_that_is_revoked_meanwhile_is_refused(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    edge = await centre.register(await centre.create("manual", accept="manual"))
    async with held(centre, edge) as task:
        assert (await admin.post(f"/v1/cluster/{edge.cluster}/reject", json={"reason": "x"})).status_code == 200
        with pytest.raises(AssertionError, match="not valid any more"):
            await answered(task)


async def test_what_goes_wrong_while_an_edge_waits_is_told_as_ever(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    """The answer is made outside of what turns a route's errors into problems."""
    edge = await centre.register(await centre.create("manual", accept="manual"))
    offer = await known(centre, edge)
    post = centre.client(edge.as_agent).post("/v1/agent/heartbeat", json=offer, headers={"X-Request-Id": "held-1"})
    with capture_logs() as logged:
        task = asyncio.create_task(post)
        async with asyncio.timeout(20):
            while not len(centre.app.state.live.held_beats):
                await asyncio.sleep(0.01)
        await admin.post(f"/v1/cluster/{edge.cluster}/reject", json={"reason": "x"})
        answer = await asyncio.wait_for(task, 20)
    assert answer.status_code == 401 and answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["www-authenticate"].startswith("Basic")
    problem = answer.json()
    assert problem["request_id"] == answer.headers["x-request-id"] == "held-1"
    assert "not valid any more" in problem["detail"]
    [line] = [each for each in logged if each.get("path") == "/v1/agent/heartbeat" and each["event"] == "request"]
    assert line["status"] == 401


async def test_an_answer_that_was_held_back_is_like_any_other(centre: GatewayCentre, edge: EdgeCredentials) -> None:
    agent = centre.client({**edge.as_agent, "Origin": "https://console.example"})
    offer = {**await known(centre, edge), "wait": 0.2}
    at_once = await agent.post("/v1/agent/heartbeat", json={**offer, "wants_digest": None})
    later = await agent.post("/v1/agent/heartbeat", json=offer)
    assert later.content == at_once.content
    its_own = {"x-request-id"}
    assert {n: v for n, v in later.headers.items() if n not in its_own} == {
        n: v for n, v in at_once.headers.items() if n not in its_own
    }


async def test_while_an_edge_waits_nothing_that_led_to_its_route_is_kept(
    centre: GatewayCentre, edge: EdgeCredentials
) -> None:
    """It took almost half of the memory of an edge that waits."""
    kinds = {AgentCaller, EdgeOrders, EdgeCaller, ClusterRow, SolvedDependency, Request}

    def led_to_it() -> dict[int, object]:
        return {id(each): each for each in gc.get_objects() if type(each) in kinds}

    of_others = led_to_it()  # what other tests keep; kept here as well, so that nothing new has its address
    async with held(centre, edge) as task, asyncio.timeout(20):  # the first look has it asked again, for a moment
        while led_to_it().keys() - of_others.keys():
            await asyncio.sleep(0.05)
        assert not task.done()


async def test_an_edge_that_new_hardware_replaces_meanwhile_is_refused(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    async with held(centre, edge) as task:
        moved = await admin.post(f"/v1/cluster/{edge.cluster}/recreate", json={"new_hardware": True})
        assert moved.status_code in {200, 202}, moved.text
        with pytest.raises(AssertionError, match="not valid any more"):
            await answered(task)


async def test_a_status_that_is_reported_meanwhile_is_not_asked_for(
    centre: GatewayCentre, edge: EdgeCredentials
) -> None:
    agent = centre.client(edge.as_agent)
    first = await agent.put("/v1/agent/status", json={"kubeseal_cert": certificate()})
    digest = first.headers["Edgewright-Status-Digest"]
    async with held(centre, edge, **await known(centre, edge, status_digest=digest)) as task:
        hosts = [{"hostname": "press-1", "control_plane": True}]
        await agent.put("/v1/agent/status", json={"kubeseal_cert": certificate(), "hosts": hosts})
        await asyncio.sleep(1.0)
        assert not task.done(), "nothing is wanted that the agent does not know"


async def test_what_happens_to_others_is_not_told(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    other = await centre.register(await centre.create("other"), uid="uid-2")
    async with held(centre, edge) as task, held(centre, other) as told:
        await admin.post(f"/v1/cluster/{other.cluster}/credential/rotate", json={"roles": ["agent"]})
        await answered(told)
        assert not task.done()


async def test_the_time_is_over(centre: GatewayCentre, edge: EdgeCredentials) -> None:
    offer = {**await known(centre, edge), "wait": 0.3}
    told = await beat(centre, edge, **offer)
    assert (told["revisions"], told["wants_digest"]) == (offer["revisions"], offer["wants_digest"])


async def test_another_heartbeat_of_the_same_edge_frees_the_first(
    centre: GatewayCentre, edge: EdgeCredentials
) -> None:
    offer = await known(centre, edge)
    async with held(centre, edge, **offer) as first:
        second = asyncio.create_task(beat(centre, edge, **offer))
        assert (await answered(first))["wants_digest"] == offer["wants_digest"]
        assert not second.done() and len(centre.app.state.live.held_beats) == 1
        second.cancel()


async def test_an_agent_that_offers_nothing_is_answered_as_ever(centre: GatewayCentre, edge: EdgeCredentials) -> None:
    told = await beat(centre, edge)
    assert not {"revisions", "wants_digest"} & told.keys()


async def test_the_end_of_the_gateway_answers_all(centre: GatewayCentre, edge: EdgeCredentials) -> None:
    async with held(centre, edge) as task:
        centre.app.state.live.closing.set()
        assert (await answered(task))["state"] == "active"
    assert (await beat(centre, edge, **await known(centre, edge)))["state"] == "active", "nobody waits any more"


async def test_who_finds_no_room_is_answered_at_once(tmp_path: Path, fresh_database: Path) -> None:
    file = tmp_path / "edgewright.db"
    file.write_bytes(fresh_database.read_bytes())
    limits = ConnectionLimits(overall=2)
    async with gateway_centre(file, tmp_path / "repositories", limits) as centre:
        edge = await centre.register(await centre.create("one"))
        other = await centre.register(await centre.create("two"), uid="uid-2")
        async with held(centre, edge):
            assert (await beat(centre, other, **await known(centre, other)))["state"] == "active"
            assert len(centre.app.state.live.held_beats) == 1


async def test_what_an_edge_waits_for_is_no_slow_answer(
    centre: GatewayCentre, admin: httpx.AsyncClient, edge: EdgeCredentials
) -> None:
    await beat(centre, edge, **{**await known(centre, edge), "wait": 0.6})
    shown = (await admin.get("/metrics")).text
    label = 'method="POST",route="/v1/agent/heartbeat"'
    within = next(line for line in shown.splitlines() if f'{{le="0.5",{label}}}' in line)
    total = next(line for line in shown.splitlines() if f"edgewright_http_request_seconds_count{{{label}}}" in line)
    assert within.rsplit(" ", 1)[1] == total.rsplit(" ", 1)[1] == "2.0"


class Happenings:
    """An audit log that a test writes."""

    def __init__(self) -> None:
        self.touched_clusters: list[UUID] = []
        self.asked = 0

    async def last_position(self) -> int:
        return len(self.touched_clusters)

    async def touched(self, *, after: int, limit: int = 2000) -> tuple[int, set[UUID]]:
        self.asked += 1
        found = self.touched_clusters[after : after + limit]
        return after + len(found), set(found)


async def woken(seats: dict[UUID, Seat]) -> set[UUID]:
    return {cluster for cluster, seat in seats.items() if await seat.has_news(0)}


async def test_news_of_ones_own_go_before_those_of_all_and_these_are_spread() -> None:
    """A thousand edges that fetch the same charts at the same moment would keep everybody waiting."""
    log, charts, now = Happenings(), ["a"], [0.0]

    async def head() -> str:
        return charts[-1]

    beats = HeldBeats(
        log,  # type: ignore[arg-type]  # the two questions that it asks
        stamp=None,
        charts=head,
        room=1000,
        closing=asyncio.Event(),
        clock=lambda: now[0],
    )
    clusters = [uuid4() for _ in range(4 * AT_ONCE)]
    seats: dict[UUID, Seat] = {}
    contexts = [(cluster, beats.seat(cluster)) for cluster in clusters]
    for cluster, context in contexts:
        seat = context.__enter__()
        assert seat is not None
        seats[cluster] = seat
    for _ in range(4):
        await beats.look()
    await woken(seats)  # the first look tells all to look for themselves

    charts.append("b")
    now[0] = 100.0
    await beats.look()
    first = await woken(seats)
    assert len(first) == AT_ONCE
    mine = clusters[-1]
    log.touched_clusters.append(mine)
    await beats.look()
    assert mine in await woken(seats)
    for _ in range(3):
        await beats.look()
    assert len(await woken(seats)) >= 2 * AT_ONCE - 1
    await beats.look()
    assert await woken(seats) == set()


async def test_a_database_that_did_not_change_is_not_asked() -> None:
    log, stamp = Happenings(), [1]

    async def head() -> str:
        return "a"

    beats = HeldBeats(
        log,  # type: ignore[arg-type]  # the two questions that it asks
        stamp=lambda: stamp[0],
        charts=head,
        room=1000,
        closing=asyncio.Event(),
    )
    cluster = uuid4()
    with beats.seat(cluster) as seat:
        assert seat is not None
        for _ in range(5):
            await beats.look()
        await seat.has_news(0)
        assert log.asked == 1
        log.touched_clusters.append(cluster)
        stamp[0] = 2
        await beats.look()
        assert log.asked == 2 and await seat.has_news(0)


def event(cluster: UUID, kind: EventKind) -> NewEvent:
    return NewEvent(id=uuid4(), cluster=cluster, actor="token:test", kind=kind, message="It happened.")


async def test_a_database_that_is_away_is_told_of_once_and_keeps_all_waiting() -> None:
    class Away(Happenings):
        async def last_position(self) -> int:
            raise Waiting("The database is away.", code="database_unavailable")

    async def head() -> None:
        return None

    beats = HeldBeats(
        Away(),  # type: ignore[arg-type]  # the two questions that it asks
        stamp=None,
        charts=head,
        room=1000,
        closing=asyncio.Event(),
    )
    with capture_logs() as logged, beats.seat(uuid4()) as seat:
        for _ in range(5):
            await beats.look()
        assert seat is not None and not await seat.has_news(0)
    assert len(logged) == 1


class StuckDisk:
    """Git on a disk that does not answer until it is mended."""

    def __init__(self) -> None:
        self.mended, self.asked = threading.Event(), 0

    def head(self, _repository: UUID) -> str:
        self.asked += 1
        self.mended.wait(60)
        return "a" * 40


async def test_a_disk_that_hangs_keeps_no_heartbeat_and_no_other_thread_waiting() -> None:
    disk = StuckDisk()
    wanted = WantedRevisions(disk, patience=0.05)  # type: ignore[arg-type]  # the one question that it asks
    try:
        told = await asyncio.wait_for(asyncio.gather(*(wanted.of(uuid4()) for _ in range(2 * MOST_UNDER_WAY))), 20)
        assert set(map(len, told)) == {0}
        assert disk.asked <= THREADS
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 10) == "free"
    finally:
        disk.mended.set()
    async with asyncio.timeout(20):
        while not await wanted.of(uuid4()):
            await asyncio.sleep(0.05)


async def test_what_cannot_be_read_now_is_no_news(
    centre: GatewayCentre, edge: EdgeCredentials, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gateway that is behind would otherwise be called again at once by whoever missed a revision."""
    body = await known(centre, edge)
    assert body["revisions"]
    monkeypatch.setattr(centre.app.state.live.wanted_revisions, "_under_way", MOST_UNDER_WAY)
    told = await beat(centre, edge, **{**body, "wait": 0.1})
    assert told["revisions"] == body["revisions"]
