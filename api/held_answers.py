"""Answers that come later, and what is kept of a request until then.

The frames of routing, the solved dependencies and the parsed body take more memory than a connection. A route that
holds its answer back returns a ``HeldAnswer``: everything that led to the route ends, and the answer is awaited here,
outside routing.
"""

import time
from dataclasses import dataclass
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from api.connections.callers import connection_of
from api.problems import answer_raised
from edgewright.errors import EdgewrightError

_HELD = "held_answer"
"""Where an answer that is held back stands in a scope's state."""


class Later(Protocol):
    """What becomes the answer."""

    async def answer(self) -> Response:
        """Waits for it; an ``EdgewrightError`` is answered as one that a route raises."""

    def end(self) -> None:
        """Stops waiting: the client has gone."""


class HeldAnswer(Response):
    """What a route returns to have ``HeldAnswers`` send the answer later."""

    def __init__(self, later: Later) -> None:
        super().__init__()
        self._later = later

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"][_HELD] = _Held(self._later, send)


@dataclass(frozen=True, slots=True)
class _Held:
    """An answer that is held back, and the ``send`` of its route: inner middleware still sees the answer."""

    later: Later
    send: Send


class HeldAnswers:
    """Wraps everything that may end while an answer is held back."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        held = await self._ask(scope, receive, send)
        if held is not None:
            await _answer(held, scope, receive)

    async def _ask(self, scope: Scope, receive: Receive, send: Send) -> _Held | None:
        """Calls the application with a copy of the scope, so that what it notes there is not kept while waiting."""
        asked = dict(scope)
        try:
            await self._app(asked, receive, send)
        finally:
            if "route" in asked:
                scope["route"] = asked["route"]
        held: _Held | None = scope.setdefault("state", {}).pop(_HELD, None)
        return held


async def _answer(held: _Held, scope: Scope, receive: Receive) -> None:
    connection, began = connection_of(scope), time.monotonic()
    if connection is not None:
        connection.on_end = held.later.end
        if not connection.has_place:  # it has ended on the way here
            held.later.end()
    try:
        answer = await held.later.answer()
    except EdgewrightError as error:
        answer = answer_raised(Request(scope), error)
    finally:
        scope["state"]["held"] = time.monotonic() - began
        if connection is not None:
            connection.on_end = None
    await answer(scope, receive, held.send)
