"""Streams the audit log as server-sent events; clients resume with ``Last-Event-ID``.

Events have no ``event:`` name, so that a browser's ``onmessage`` receives all of them; their ``kind`` says what
happened. A client that starts without a position gets one at once, as an event named ``position``, so that it can
resume even if the connection breaks before anything happens. A stream that does not follow ends with such an event;
without it, the connection broke. Libraries only accept an ``id`` from an event that has data.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack
from functools import partial
from typing import Annotated

import structlog
from fastapi import APIRouter, Header, Query
from pydantic import AwareDatetime
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.types import Receive, Scope, Send

from api.access import Access, TheAccess
from api.auth import Reader, asker, still_granted
from api.known_names import known_cluster
from api.routes.progress import ProgressRoom, TheProgressRoom
from edgewright.errors import EdgewrightError
from edgewright.ports.audit import LAST_POSITION, EventFilter, EventKind
from edgewright.ports.operators import OperatorToken, Permission

POLL_SECONDS = 0.5
KEEP_ALIVE_SECONDS = 15
RECONNECT_MILLISECONDS = 1000
"""How long a client library waits before it reconnects."""
POSITION = "position"
"""Name of the event that tells a subscriber its position in the stream."""
MOST_CLUSTERS = 100
"""Most clusters that one stream can be filtered by."""
_STREAM = """\
Each event without a name is one line of the audit log: `data` is an `Event` as JSON, `id` its position. A subscriber
that says nowhere to begin first gets one named `position`, with the `id` that it begins behind. With `follow=false`
the last event is one named `position`: a stream that ends without it was cut off, and is resumed like any other.
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
    cluster: Annotated[
        list[str] | None, Query(max_length=MOST_CLUSTERS, description="Only of this cluster: its UUID or name.")
    ] = None,
    kind: Annotated[list[EventKind] | None, Query(description="Only of this kind.")] = None,
    since: Annotated[AwareDatetime | None, Query(description="Only what happened then or later.")] = None,
    after: Annotated[
        int | None, Query(ge=0, le=LAST_POSITION, description="Position after which to begin; 0: from the start.")
    ] = None,
    follow: Annotated[bool, Query(description="False: the stream ends after past events.")] = True,
    last_event_id: Annotated[int | None, Header(ge=0, le=LAST_POSITION)] = None,
) -> EventSourceResponse:
    """Begins behind `Last-Event-ID`, else `after`; else from the start with `since` or `follow=false`, else now.

    `cluster` and `kind` may be given several times. Ends when the token is revoked.
    """
    known = last_event_id if last_event_id is not None else after
    if known is None and (since is not None or not follow):
        known = 0
    clusters = [await known_cluster(room.directory, each) for each in cluster or ()]
    only = EventFilter(frozenset(clusters), frozenset(kind or ()), since)
    with ExitStack() as seat:
        seat.enter_context(room.event_streams.seat(asker(operator)))  # before the database is asked
        position = await room.audit.last_position() if known is None else known
        opening = _told(position) if known is None else ServerSentEvent(retry=RECONNECT_MILLISECONDS)
        stream = _stream(room, access, operator, position=position, only=only, follow=follow, opening=opening)
        return _Seated(stream, seat.pop_all())


def _told(position: int) -> ServerSentEvent:
    told = json.dumps({"position": position})
    return ServerSentEvent(data=told, event=POSITION, id=str(position), retry=RECONNECT_MILLISECONDS)


class _Seated(EventSourceResponse):
    """A stream that frees its seat, however it ends."""

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
    only: EventFilter,
    follow: bool,
    opening: ServerSentEvent,
) -> AsyncIterator[ServerSentEvent]:
    yield opening
    end = position if follow else await room.audit.last_position()
    while not room.closing.is_set():
        started = time.monotonic()
        try:
            if not await room.event_streams.grants.of(operator.id, partial(_may_go_on, access, operator)):
                return
            head = await room.event_streams.head.of("head", room.audit.last_position) if follow else end
            found = await room.audit.events(after=position, only=only) if head > position else []
            known = True
        except EdgewrightError as error:
            _log.warning("event stream cannot read events", reason=error.detail)
            found, known = [], False
        for event in found:
            position = event.position
            yield ServerSentEvent(data=event.model_dump_json(), id=str(event.position))
        if found:
            continue
        if known:
            position = max(position, head)  # what the filter leaves out is not read again
            if not follow:
                yield _told(position)
                return
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
