"""Answers that come later, and what is kept of a request until then.

Routing, dependencies and the body of a request take more memory than its connection. A route that holds its answer
back returns a ``HeldAnswer``: all that has led to the route ends, and the answer is waited for out here.
"""

import time
from collections.abc import Awaitable, Callable
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
        """Waits for it; whatever it raises of ours is answered as a route's errors are."""

    def end(self) -> None:
        """The client is gone: there is nothing to wait for."""


class HeldAnswer(Response):
    """The answer of a route that ``HeldAnswers`` waits for."""

    def __init__(self, later: Later) -> None:
        super().__init__()
        self._later = later

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"][_HELD] = _Held(self._later, send)


class _Held:
    """What waits, and how it is sent: through all that wraps the application further inside."""

    __slots__ = ("later", "send")

    def __init__(self, later: Later, send: Send) -> None:
        self.later = later
        self.send = send


class HeldAnswers:
    """Wraps all that need not be there while an answer is held back."""

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
        """Asks with a scope of its own: what is noted there ends with the question."""
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
    try:
        answer = await held.later.answer()
    except EdgewrightError as error:
        answer = answer_raised(Request(scope), error)
    finally:
        scope["state"]["held"] = time.monotonic() - began
        if connection is not None:
            connection.on_end = None
    await answer(scope, receive, held.send)
