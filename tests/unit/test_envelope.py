"""The end of a gateway's patience with requests under way."""

import asyncio
import json

import pytest
from opentelemetry.trace import NoOpTracer
from starlette.types import Message, Receive, Scope, Send

from api.metrics import Metrics
from api.middleware import Envelope

SCOPE: Scope = {"type": "http", "method": "PUT", "path": "/v1/x", "headers": [], "query_string": b""}


async def nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def cancelled_while_it_waits(begins: bool) -> list[Message]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def waits(scope: Scope, receive: Receive, send: Send) -> None:
        if begins:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        await asyncio.Event().wait()

    envelope = Envelope(waits, metrics=Metrics(), tracer=NoOpTracer())
    request = asyncio.create_task(envelope(dict(SCOPE), nothing, send))
    await asyncio.sleep(0)
    request.cancel()
    await request
    return sent


async def test_a_request_that_is_cut_off_is_told_to_come_again() -> None:
    start, body = await cancelled_while_it_waits(begins=False)
    assert start["status"] == 503
    assert (b"retry-after", b"2") in start["headers"]
    assert json.loads(body["body"])["code"] == "gateway_stopping"


async def test_an_answer_that_has_begun_is_broken_off() -> None:
    with pytest.raises(asyncio.CancelledError):
        await cancelled_while_it_waits(begins=True)
