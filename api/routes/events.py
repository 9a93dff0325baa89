"""Server-sent events: the audit log as it grows, resumable by ``Last-Event-ID``.

Events have no ``event:`` name, so that a browser's ``onmessage`` receives every one; what happened is their ``kind``.
Who begins without a position is told one at once, as an event named ``position``: a connection that breaks before
anything has happened is resumed there. Libraries take an ``id`` only from an event that has data.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from functools import partial
from typing import Annotated
from uuid import UUID

import structlog
from fastapi import APIRouter, Header, Query
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.types import Receive, Scope, Send

from api.access import Access, TheAccess
from api.auth import Reader, asker, still_granted
from api.routes.progress import ProgressRoom, TheProgressRoom
from edgewright.errors import EdgewrightError
from edgewright.ports.audit import LAST_POSITION
from edgewright.ports.operators import OperatorToken, Permission

POLL_SECONDS = 0.5
KEEP_ALIVE_SECONDS = 15
RECONNECT_MILLISECONDS = 1000
"""How long a library waits before it connects again."""
POSITION = "position"
"""Name of the event that tells a subscriber where it begins."""
_STREAM = """\
Each event without a name is one line of the audit log: `data` is an `Event` as JSON, `id` its position. A subscriber
that sends neither `Last-Event-ID` nor `after` first gets one named `position`, with the `id` that it begins behind.
"""

router = APIRouter(tags=["progress"])
_log = structlog.get_logger("edgewright.api")


@router.get(
    "/v1/events",
    summary="Stream of events",
    response_class=EventSourceResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}, "description": _STREAM}},
)
async def events(
    *,
    operator: Reader,
    access: TheAccess,
    room: TheProgressRoom,
    cluster: Annotated[UUID | None, Query(description="Events of this cluster only.")] = None,
    after: Annotated[
        int | None, Query(ge=0, le=LAST_POSITION, description="Position to begin behind; 0: from the start.")
    ] = None,
    last_event_id: Annotated[int | None, Header(ge=0, le=LAST_POSITION)] = None,
) -> EventSourceResponse:
    """Begins behind `Last-Event-ID`, else `after`, else now. Ends when the token is revoked."""
    known = last_event_id if last_event_id is not None else after
    with ExitStack() as seat:
        seat.enter_context(room.event_streams.seat(asker(operator)))  # before the database is asked
        position = await room.audit.last_position() if known is None else known
        opening = _opening(position) if known is None else ServerSentEvent(retry=RECONNECT_MILLISECONDS)
        stream = _stream(room, access, operator, position=position, cluster=cluster, opening=opening)
        return _Seated(stream, seat.pop_all())


def _opening(position: int) -> ServerSentEvent:
    told = json.dumps({"position": position})
    return ServerSentEvent(data=told, event=POSITION, id=str(position), retry=RECONNECT_MILLISECONDS)


class _Seated(EventSourceResponse):
    """A stream whose end, whatever it is, frees its seat."""

    def __init__(self, stream: AsyncIterator[ServerSentEvent], seat: ExitStack) -> None:
        super().__init__(stream, ping=KEEP_ALIVE_SECONDS, headers={"X-Accel-Buffering": "no"})
        self._seat = seat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._seat:
            await super().__call__(scope, receive, send)


async def _stream(
    room: ProgressRoom,
    access: Access,
    operator: OperatorToken,
    *,
    position: int,
    cluster: UUID | None,
    opening: ServerSentEvent,
) -> AsyncIterator[ServerSentEvent]:
    yield opening
    while not room.closing.is_set():
        started = time.monotonic()
        try:
            if not await room.event_streams.grants.of(operator.id, partial(_may_go_on, access, operator)):
                return
            head = await room.event_streams.head.of("head", room.audit.last_position)
            found = await room.audit.events(after=position, cluster=cluster) if head > position else []
        except EdgewrightError as error:
            _log.warning("event stream cannot read events", reason=error.detail)
            found = []
        for event in found:
            position = event.position
            yield ServerSentEvent(data=event.model_dump_json(), id=str(event.position))
        if not found:
            await _until_set(room.closing, POLL_SECONDS - (time.monotonic() - started))


async def _may_go_on(access: Access, operator: OperatorToken) -> bool:
    token = await access.operators.find(operator.id)
    return token is not None and token.allows(Permission.READ) and await still_granted(access, token)


async def _until_set(closing: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            await closing.wait()
    except TimeoutError:
        pass
