"""What is asked again is answered from memory, and never a moment longer than it is true."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest
from gateway_centre import GatewayCentre
from starlette.types import Message, Receive, Scope, Send

from api.kept_answers import LONGEST_SECONDS, RENEWED_SECONDS, KeptAnswers
from edgewright.adapters.database.config_store.config_store import SqlConfigStore
from edgewright.ports.config_store import Entry


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often a setup status was read from the database."""
    read, count = SqlConfigStore.get, Counter[str]()

    async def counted(self: SqlConfigStore, app: UUID, object_: UUID) -> Entry | None:
        count["get"] += 1
        return await read(self, app, object_)

    monkeypatch.setattr(SqlConfigStore, "get", counted)
    return count


async def test_the_same_question_is_answered_from_memory_under_its_own_request_id(
    centre: GatewayCentre, admin: httpx.AsyncClient, readings: Counter[str]
) -> None:
    cluster = await centre.create("kept")
    first, *others = [await admin.get(f"/v1/cluster/{cluster}/status") for _ in range(20)]
    assert first.json()["ready"] is True
    assert {answer.content for answer in others} == {first.content}
    assert len({answer.headers["x-request-id"] for answer in (first, *others)}) == 20
    assert readings["get"] < 20


async def test_a_revocation_by_another_process_acts_on_the_next_request(
    centre: GatewayCentre, admin: httpx.AsyncClient, tmp_path: Path
) -> None:
    cluster = await centre.create("revoked")
    assert (await admin.get(f"/v1/cluster/{cluster}/status")).status_code == 200
    with sqlite3.connect(tmp_path / "edgewright.db") as elsewhere:
        elsewhere.execute("UPDATE operator_tokens SET revoked_at = '2026-01-01 00:00:00.000000'")
    elsewhere.close()
    assert (await admin.get(f"/v1/cluster/{cluster}/status")).status_code == 401


async def test_a_kept_answer_is_for_who_has_asked(centre: GatewayCentre, admin: httpx.AsyncClient) -> None:
    cluster = await centre.create("private")
    token = await centre.bootstrap_token(cluster)
    script = f"/v1/cluster/{cluster}/bootstrap?token="
    for _ in range(2):
        assert (await admin.get(f"/v1/cluster/{cluster}/status")).status_code == 200
        assert (await centre.client().get(f"/v1/cluster/{cluster}/status")).status_code == 401
        assert (await centre.client().get(script + token)).status_code == 200
        assert (await centre.client().get(script + token[:-1])).status_code == 403


async def test_a_replaced_registration_token_gets_no_script(centre: GatewayCentre) -> None:
    cluster = await centre.create("replaced")
    url = f"/v1/cluster/{cluster}/bootstrap?token={await centre.bootstrap_token(cluster)}"
    assert (await centre.client().get(url)).status_code == 200
    await centre.bootstrap_token(cluster)
    assert (await centre.client().get(url)).status_code == 403


async def at_once() -> None:
    """Nothing to wait for."""


class Counting:
    """An application that numbers its answers."""

    def __init__(self, statuses: tuple[int, ...] = ()) -> None:
        self.asked = 0
        self._statuses = statuses
        self.while_answering: Callable[[], object] = lambda: None
        self.before_answering: Callable[[], Coroutine[Any, Any, Any]] = at_once

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked += 1
        number = self.asked
        self.while_answering()
        await self.before_answering()
        status = self._statuses[number - 1] if self._statuses else 200
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": str(number).encode()})


async def ask(kept: KeptAnswers, **differs: Any) -> str:
    """The body of an answer."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        raise AssertionError("a GET has no body")

    scope = {"type": "http", "method": "GET", "path": "/v1/cluster/1/status", "query_string": b"", "headers": []}
    await kept({**scope, **differs}, receive, send)
    body: bytes = sent[-1]["body"]
    return body.decode()


async def test_an_answer_is_kept_for_half_a_second_at_most() -> None:
    now = [0.0]
    kept = KeptAnswers(Counting(), lambda: 1, clock=lambda: now[0])
    assert [await ask(kept), await ask(kept)] == ["1", "1"]
    now[0] = LONGEST_SECONDS
    assert await ask(kept) == "2"


async def test_an_answer_is_made_anew_by_one_while_others_still_get_the_old_one() -> None:
    now, app, asked = [0.0], Counting(), asyncio.Event()
    kept = KeptAnswers(app, lambda: 1, clock=lambda: now[0])
    assert await ask(kept) == "1"
    now[0], app.before_answering = RENEWED_SECONDS, asked.wait
    renewing = asyncio.create_task(ask(kept))
    await asyncio.sleep(0)
    assert [await ask(kept), await ask(kept)] == ["1", "1"]
    now[0] = LONGEST_SECONDS
    waiting = asyncio.create_task(ask(kept))
    await asyncio.sleep(0)
    assert not waiting.done(), "the old one is too old now"
    asked.set()
    now[0] = RENEWED_SECONDS
    assert [await renewing, await waiting, await ask(kept), app.asked] == ["2", "2", "2", 2]


async def test_an_answer_that_a_write_has_overtaken_is_not_kept() -> None:
    app, stamp = Counting(), [1]
    app.while_answering = lambda: stamp.append(stamp[-1] + 1)
    kept = KeptAnswers(app, lambda: stamp[-1])
    assert [await ask(kept), await ask(kept)] == ["1", "2"]


async def test_many_who_ask_at_once_get_one_answer() -> None:
    app, asked = Counting(), asyncio.Event()
    app.before_answering = asked.wait
    kept = KeptAnswers(app, lambda: 1)
    asking = [asyncio.create_task(ask(kept)) for _ in range(20)]
    await asyncio.sleep(0)
    asked.set()
    assert set(await asyncio.gather(*asking)) == {"1"}


async def test_who_has_waited_gets_no_answer_that_a_write_has_overtaken() -> None:
    app, asked, stamp = Counting(), asyncio.Event(), [1]
    app.before_answering = asked.wait
    kept = KeptAnswers(app, lambda: stamp[-1])
    first = asyncio.create_task(ask(kept))
    await asyncio.sleep(0)
    stamp.append(2)
    second = asyncio.create_task(ask(kept))
    await asyncio.sleep(0)
    asked.set()
    assert [await first, await second] == ["1", "2"]


async def test_nobody_waits_long_for_the_answer_to_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.kept_answers.PATIENCE_SECONDS", 0.01)
    app, asked = Counting(), asyncio.Event()
    app.before_answering = asked.wait
    kept = KeptAnswers(app, lambda: 1)
    first = asyncio.create_task(ask(kept))
    await asyncio.sleep(0)
    app.before_answering = at_once
    assert await ask(kept) == "2"
    asked.set()
    await first


@pytest.mark.parametrize(
    "differs",
    [
        {"method": "HEAD"},
        {"query_string": b"token=2"},
        {"headers": [(b"authorization", b"Bearer 2")]},
        {"headers": [(b"if-none-match", b'"2"')]},
        {"path": "/v1/cluster/2/status"},
    ],
    ids=str,
)
async def test_another_question_is_another_answer(differs: dict[str, Any]) -> None:
    kept = KeptAnswers(Counting(), lambda: 1)
    assert [await ask(kept), await ask(kept, **differs), await ask(kept)] == ["1", "2", "1"]


@pytest.mark.parametrize("path", ["/v1/cluster", "/v1/cluster/1", "/v1/cluster/1/timeline", "/v1/token"])
async def test_other_paths_are_always_asked(path: str) -> None:
    kept = KeptAnswers(Counting(), lambda: 1)
    assert [await ask(kept, path=path), await ask(kept, path=path)] == ["1", "2"]


async def test_nothing_is_kept_where_writes_cannot_be_told_and_no_refusal_ever() -> None:
    for kept in (KeptAnswers(Counting(), None), KeptAnswers(Counting(), lambda: None)):
        assert [await ask(kept), await ask(kept)] == ["1", "2"]
    refusing = KeptAnswers(Counting((403, 200, 500)), lambda: 1)
    assert [await ask(refusing), await ask(refusing), await ask(refusing)] == ["1", "2", "2"]
