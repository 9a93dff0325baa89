"""Readiness, verbs, timeline, events, residue."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
from gateway_centre import GatewayCentre, bearer, fence_of
from starlette.types import Message

from api.event_streams import FRESH_SECONDS, OF_ONE_TOKEN, TOGETHER, SharedAnswer
from edgewright.domain.cluster import Phase, StepName, StepState
from edgewright.domain.events import EventKind, NewEvent
from edgewright.domain.projection import Projection, Residue, StepRecord
from edgewright.errors import Waiting
from edgewright.ports.operators import Permission

NOW = datetime.now(UTC)


async def test_a_ready_cluster_says_so_at_once(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    cluster = await centre.create("ready")
    answer = await admin.get(f"/v1/cluster/{cluster}/ready", params={"wait": 30})
    assert (answer.status_code, answer.json()) == (200, {"ready": True, "as_of": None})


async def test_what_the_projection_says_is_marked_when_temporal_is_away(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    cluster = await centre.create("ready")
    centre.fleet.available = False
    answer = await admin.get(f"/v1/cluster/{cluster}/ready")
    assert answer.json()["ready"] is True
    assert datetime.fromisoformat(answer.json()["as_of"]) > NOW - timedelta(minutes=5)


async def test_a_cluster_that_is_not_ready_says_what_it_waits_for(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    centre.workflow.commissions = False
    cluster = await centre.create("slow")
    path = f"/v1/cluster/{cluster}/ready"
    answer = await admin.get(path)
    assert (answer.status_code, answer.json()["code"], answer.json()["ready"]) == (503, "not_ready", False)
    assert answer.headers["Retry-After"] == "1"
    sentence = "waiting for Git, attempt 3, next at 12:00, because its disk is full"
    await centre.project(cluster, waiting_for=sentence)
    assert (await admin.get(path, params={"wait": 0.2})).json()["waiting_for"] == sentence


async def test_waiting_ends_when_the_cluster_becomes_ready(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    centre.workflow.commissions = False
    cluster = await centre.create("soon")
    waiting = asyncio.create_task(admin.get(f"/v1/cluster/{cluster}/ready", params={"wait": 30}))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    centre.workflow.commissions = True
    await centre.fleet.nudge(cluster)
    assert (await asyncio.wait_for(waiting, 20)).status_code == 200


async def test_a_removed_cluster_is_not_ready(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    cluster = await centre.create("gone")
    await admin.delete(f"/v1/app/bdb13634-0b3d-4e38-a065-9d88c12ee78d/object/{cluster}")
    answer = await admin.get(f"/v1/cluster/{cluster}/ready")
    assert answer.status_code == 503
    assert "removed" in answer.json()["detail"]


async def test_pausing_and_resuming_show(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    cluster = await centre.create("paused")
    paused = await admin.post(f"/v1/cluster/{cluster}/pause", json={"reason": "freeze"})
    assert (paused.status_code, paused.json()["pause"]) == (200, {"paused": True, "reason": "freeze"})
    resumed = await admin.post(f"/v1/cluster/{cluster}/resume")
    assert resumed.json()["pause"] == {"paused": False, "reason": ""}


async def test_who_pauses_while_somebody_else_resumes_is_told_so(
    centre: GatewayCentre, admin: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = await centre.create("contested")
    pause = centre.fleet.pause

    async def overtaken(*arguments: Any, **options: Any) -> Projection:
        wishes = centre.gateway.wishes
        await wishes.set_paused(cluster, paused=True, reason="first", actor="token:other")
        await wishes.set_paused(cluster, paused=False, reason="", actor="token:other")
        return await pause(*arguments, **options)

    monkeypatch.setattr(centre.fleet, "pause", overtaken)
    answer = await admin.post(f"/v1/cluster/{cluster}/pause", json={"reason": "mine"})
    assert (answer.status_code, answer.json()["code"]) == (409, "overtaken")
    assert not (await admin.get(f"/v1/cluster/{cluster}")).json()["pause"]["paused"]


async def test_a_step_is_retried_or_skipped_only_when_that_makes_sense(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    cluster = await centre.create("stuck")
    steps = (
        StepRecord(name=StepName.CREATE_REPOSITORY, state=StepState.DONE),
        StepRecord(name=StepName.POPULATE_REPOSITORY, state=StepState.WAITING, attempts=3, error="disk full"),
        StepRecord(name=StepName.AWAIT_GOODBYE, state=StepState.WAITING),
    )
    await centre.project(cluster, steps=steps)
    step = f"/v1/cluster/{cluster}/step"
    retried = await admin.post(f"{step}/populate_repository/retry")
    assert retried.status_code == 200
    assert {each["name"]: each["state"] for each in retried.json()["steps"]}["populate_repository"] == "pending"
    refused = await admin.post(f"{step}/create_repository/retry")
    assert (refused.status_code, refused.json()["code"]) == (409, "step_not_waiting")
    refused = await admin.post(f"{step}/populate_repository/skip", json={"reason": "no"})
    assert (refused.status_code, refused.json()["code"]) == (409, "step_not_skippable")
    assert (await admin.post(f"{step}/await_goodbye/skip", json={"reason": " "})).status_code == 422
    assert (await admin.post(f"{step}/await_goodbye/skip", json={"reason": "burnt down"})).status_code == 200
    assert (await admin.post(f"{step}/nonsense/retry")).status_code == 404


async def test_verbs_say_when_temporal_is_away(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    cluster = await centre.create("away")
    centre.fleet.available = False
    for verb in ("pause", "resume", "step/publish_status/retry"):
        answer = await admin.post(f"/v1/cluster/{cluster}/{verb}", json={"reason": "x"})
        assert (answer.status_code, answer.json()["code"]) == (503, "temporal_unavailable")
        assert answer.headers["Retry-After"]


async def test_the_timeline_is_in_the_order_in_which_things_happened(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    """A workflow tells of its steps when it publishes: after the end of the cluster that the last one has written."""
    cluster = await centre.create("ending")
    began = await centre.ports.edge_reports.now()
    await admin.delete(f"/v1/cluster/{cluster}")
    fence = fence_of(await centre.row(cluster))
    await centre.steps.remove_central_entries(fence, StepName.REMOVE_SETUP_STATUS)
    for number in (2, 1):
        step = NewEvent(
            id=uuid4(),
            cluster=cluster,
            actor="centre",
            kind=EventKind.STEP_DONE,
            message=f"Step {number}.",
            happened_at=began - timedelta(seconds=3 - number),
        )
        await centre.ports.audit.append(step)
    path = f"/v1/cluster/{cluster}/timeline"
    whole = (await admin.get(path)).json()["items"]
    assert [event["at"] for event in whole] == sorted(event["at"] for event in whole)
    told = [event["message"] for event in whole if event["kind"] in {"step.done", "cluster.deleted"}]
    assert told == ["Step 1.", "Step 2.", "The cluster ending was deleted. Its name is free."]
    paged, after = list[dict[str, Any]](), 0
    while after is not None:
        page = (await admin.get(path, params={"after": after, "limit": 2})).json()
        paged, after = [*paged, *page["items"]], page["next"]
    assert {event["id"] for event in paged} == {event["id"] for event in whole}
    assert len(paged) == len(whole)


async def test_the_timeline_tells_who_did_what_in_pages(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    cluster = await centre.create("told")
    await admin.patch(f"/v1/cluster/{cluster}", json={"bare": True})
    whole = (await admin.get(f"/v1/cluster/{cluster}/timeline")).json()
    assert whole["next"] is None
    assert whole["items"][0]["kind"] == "cluster.created"
    assert whole["items"][0]["actor"].startswith("token:test-")
    first = (await admin.get(f"/v1/cluster/{cluster}/timeline", params={"limit": 1})).json()
    rest = (await admin.get(f"/v1/cluster/{cluster}/timeline", params={"after": first["next"]})).json()
    assert first["items"] + rest["items"] == whole["items"]
    assert (await admin.get(f"/v1/cluster/{uuid4()}/timeline")).status_code == 404


async def test_residue_is_listed_until_clean(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    cluster = await centre.create("left-over")
    assert (await admin.get("/v1/residue")).json() == {"items": []}
    await admin.delete(f"/v1/cluster/{cluster}")
    residue = Residue(step=StepName.AWAIT_GOODBYE, reason="the edge did not answer", since=NOW)
    await centre.project(cluster, phase=Phase.DETACHING, residue=(residue,))
    items = (await admin.get("/v1/residue")).json()["items"]
    assert [(item["name"], item["residue"][0]["reason"]) for item in items] == [
        ("left-over", "the edge did not answer")
    ]


class Stream:
    """One open event stream; httpx's ASGI transport would wait for its end."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[Message] = asyncio.Queue()
        self.gone = asyncio.Event()
        self.text = ""
        self.ended = False

    async def receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        await self.messages.put(message)

    async def events(self, count: int) -> list[dict[str, str]]:
        """Reads on until that many events have come."""
        async with asyncio.timeout(20):
            while len(found := self._parsed()) < count:
                message = await self.messages.get()
                self.text += message.get("body", b"").decode()
        return found

    async def end(self) -> None:
        """Reads on until the stream ends by itself."""
        async with asyncio.timeout(20):
            while True:
                message = await self.messages.get()
                self.text += message.get("body", b"").decode()
                if message["type"] == "http.response.body" and not message.get("more_body"):
                    return

    def _parsed(self) -> list[dict[str, str]]:
        blocks = self.text.replace("\r\n", "\n").split("\n\n")[:-1]
        parsed = [
            dict(line.split(": ", 1) for line in block.split("\n") if not line.startswith(":")) for block in blocks
        ]
        return [each for each in parsed if each]


@asynccontextmanager
async def stream(
    centre: GatewayCentre, query: str = "", *, called: str = "streamer", **headers: str
) -> AsyncIterator[Stream]:
    token = await centre.token(Permission.READ, name=called)
    sent = {**bearer(token.text), **headers}
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": "/v1/events",
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in sent.items()],
        "client": ("127.0.0.1", 1),
    }
    opened = Stream()
    task = asyncio.create_task(centre.app(scope, opened.receive, opened.send))
    try:
        yield opened
    finally:
        opened.gone.set()
        await asyncio.wait_for(task, 20)


async def test_events_go_on_where_the_last_one_ended(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    cluster = await centre.create("streamed")
    timeline = (await admin.get(f"/v1/cluster/{cluster}/timeline")).json()["items"]
    async with stream(centre, f"cluster={cluster}", **{"Last-Event-ID": str(timeline[0]["position"])}) as opened:
        await opened.events(len(timeline))
        await admin.patch(f"/v1/cluster/{cluster}", json={"bare": True})
        retry, *events = await opened.events(len(timeline) + 1)
    assert list(retry) == ["retry"]
    whole = (await admin.get(f"/v1/cluster/{cluster}/timeline")).json()["items"]
    assert [event["id"] for event in events] == [str(item["position"]) for item in whole[1:]]
    assert json.loads(events[-1]["data"]) == whole[-1]


async def test_a_stream_ends_when_its_token_is_revoked(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    async with stream(centre) as opened:
        start = await asyncio.wait_for(opened.messages.get(), 20)
        assert start["status"] == 200
        token = next(item for item in (await admin.get("/v1/token")).json()["items"] if item["name"] == "streamer")
        await admin.delete(f"/v1/token/{token['id']}")
        await opened.end()


async def test_a_stream_ends_when_the_gateway_does(centre: GatewayCentre) -> None:
    async with stream(centre) as opened:
        assert (await asyncio.wait_for(opened.messages.get(), 20))["status"] == 200
        centre.app.state.live.closing.set()
        await opened.end()


async def test_a_token_has_a_bounded_number_of_streams(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    streams = centre.app.state.live.event_streams
    token = await centre.token(Permission.READ)
    client = centre.client(bearer(token.text))
    with ExitStack() as seats:
        for _ in range(OF_ONE_TOKEN):
            seats.enter_context(streams.seat(token.id))
        refused = await client.get("/v1/events")
        assert (refused.status_code, refused.json()["code"]) == (429, "event_streams_busy")
        assert refused.headers["Retry-After"] == "5"
        async with stream(centre) as other:
            assert (await asyncio.wait_for(other.messages.get(), 20))["status"] == 200
        for number in range(TOGETHER - OF_ONE_TOKEN):
            seats.enter_context(streams.seat(f"another {number}"))
        assert (await admin.get("/v1/events")).status_code == 503


async def test_a_stream_that_ends_frees_its_seat(centre: GatewayCentre) -> None:
    streams = centre.app.state.live.event_streams
    async with stream(centre) as opened:
        assert (await asyncio.wait_for(opened.messages.get(), 20))["status"] == 200
        assert len(streams) == 1
    assert len(streams) == 0


async def test_streams_that_look_at_once_ask_the_database_once() -> None:
    now: list[float] = [0.0]
    asked: list[float] = []
    shared = SharedAnswer[int](lambda: now[0])

    async def ask() -> int:
        asked.append(now[0])
        return len(asked)

    assert [await shared.of("head", ask) for _ in range(100)] == [1] * 100
    assert await shared.of("another", ask) == 2
    now[0] += FRESH_SECONDS
    assert await shared.of("head", ask) == 3


@pytest.mark.parametrize("position", ["x", "-1", "9" * 30])
async def test_a_position_that_is_none_is_refused(
    centre: GatewayCentre, admin: httpx.AsyncClient, position: str
) -> None:
    for answer in (
        await admin.get("/v1/events", headers={"Last-Event-ID": position}),
        await admin.get("/v1/events", params={"after": position}),
        await admin.get(f"/v1/cluster/{await centre.create('numbered')}/timeline", params={"after": position}),
    ):
        assert answer.status_code == 422


async def test_a_recreation_that_the_workflow_has_not_taken_yet_is_not_ready(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    cluster = await centre.create("recreated")
    centre.workflow.commissions = False
    assert (await admin.post(f"/v1/cluster/{cluster}/recreate", json={})).status_code == 202
    answer = await admin.get(f"/v1/cluster/{cluster}/ready")
    assert (answer.status_code, answer.json()["code"]) == (503, "not_ready")


async def test_who_begins_without_a_position_is_told_one_at_once(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    cluster = await centre.create("quiet")
    async with stream(centre, f"cluster={cluster}") as opened:
        [first] = await opened.events(1)
        assert int(first["retry"]) > 0
        told = json.loads(first["data"])
        await admin.patch(f"/v1/cluster/{cluster}", json={"bare": True})
        event = (await opened.events(2))[-1]
    last = (await admin.get(f"/v1/cluster/{cluster}/timeline")).json()["items"][-1]
    assert first == {"id": str(told["position"]), "event": "position", "data": first["data"], "retry": first["retry"]}
    assert told["position"] < int(event["id"]) == last["position"]


async def test_events_have_no_name_so_that_a_browser_receives_them_all(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    cluster = await centre.create("nameless")
    timeline = (await admin.get(f"/v1/cluster/{cluster}/timeline")).json()["items"]
    async with stream(centre, f"cluster={cluster}&after=0") as opened:
        retry, *events = await opened.events(1 + len(timeline))
    assert list(retry) == ["retry"]
    assert [event.keys() for event in events] == [{"id", "data"}] * len(timeline)
    assert [json.loads(event["data"])["kind"] for event in events] == [item["kind"] for item in timeline]


# --- which events -------------------------------------------------------------------------------------------------


async def _told(centre: GatewayCentre, query: str) -> tuple[list[str], dict[str, str]]:
    """The sentences of a stream that ends, and its last event."""
    async with stream(centre, f"{query}&follow=false", called=f"streamer-{uuid4()}") as opened:
        await opened.end()
        _retry, *events, last = await opened.events(0)
    return [json.loads(event["data"])["message"] for event in events], last


async def test_a_stream_that_does_not_follow_ends_and_says_where(centre: GatewayCentre) -> None:
    await centre.create("a")
    told, last = await _told(centre, "after=0")
    assert "The cluster a was created." in told
    position = await centre.ports.audit.last_position()
    assert (last["event"], last["id"], json.loads(last["data"])) == (
        "position",
        str(position),
        {"position": position},
    )
    nothing, later = await _told(centre, f"after={position}&kind=cluster.created")
    assert (nothing, int(later["id"]) > position) == ([], True), "by now there is another token"


async def test_events_are_filtered_by_clusters_kinds_and_time(
    centre: GatewayCentre, admin: httpx.AsyncClient
) -> None:
    a, b = await centre.create("a"), await centre.create("b")
    await centre.create("c")
    for name in ("a", "b"):
        await admin.patch(f"/v1/cluster/{name}", json={"bare": True})
    created = "kind=cluster.created"
    assert (await _told(centre, f"cluster=A&cluster={b}&{created}"))[0] == [
        "The cluster a was created.",
        "The cluster b was created.",
    ]
    both = await _told(centre, f"cluster={a}&{created}&kind=cluster.changed")
    assert len(both[0]) == 2
    items = (await admin.get(f"/v1/cluster/{b}/timeline")).json()["items"]
    changed = next(each for each in items if each["kind"] == "cluster.changed")
    since = changed["at"].replace("+", "%2B")
    assert (await _told(centre, f"cluster=b&since={since}"))[0] == [
        each["message"]
        for each in items
        if datetime.fromisoformat(each["at"]) >= datetime.fromisoformat(changed["at"])
    ]
    assert (await _told(centre, "since=9999-01-01T00:00:00Z"))[0] == []


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("cluster=no-such-cluster", 404),
        ("kind=no.such.kind", 422),
        ("since=yesterday", 422),
        ("since=2031-02-03T04:05:06", 422),
        ("follow=maybe", 422),
        ("&".join(["cluster=x"] * 101), 422),
    ],
)
async def test_a_filter_of_events_that_makes_no_sense_is_refused(
    admin: httpx.AsyncClient, query: str, status: int
) -> None:
    assert (await admin.get(f"/v1/events?{query}")).status_code == status


async def test_a_filtered_stream_goes_on_with_what_happens(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    a = await centre.create("a")
    await centre.create("b")
    async with stream(centre, "cluster=a&kind=cluster.changed&after=0") as opened:
        for name in ("b", "a", "b", "a"):
            state = (await admin.get(f"/v1/cluster/{name}")).json()["bare"]
            await admin.patch(f"/v1/cluster/{name}", json={"bare": not state})
        _retry, *events = await opened.events(3)
    assert {json.loads(event["data"])["cluster"] for event in events} == {str(a)}
    assert len(events) == 2


async def test_a_database_that_cannot_be_read_does_not_end_a_stream_early(
    centre: GatewayCentre, monkeypatch: pytest.MonkeyPatch
) -> None:
    await centre.create("a")
    audit, broken = centre.ports.audit, [True, True]
    read = type(audit).events

    async def events(self: Any, **wish: Any) -> Any:
        if broken:
            broken.pop()
            raise Waiting("The database is locked.", code="database_locked", retry_after=1)
        return await read(self, **wish)

    monkeypatch.setattr(type(audit), "events", events)
    told, last = await _told(centre, "kind=cluster.created")
    assert (told, last["event"], broken) == (["The cluster a was created."], "position", [])
