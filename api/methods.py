"""Methods that follow from others: HEAD from GET, and which ones a path has."""

from collections.abc import Sequence

from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadFromGet:
    """Wraps the application: HEAD is answered as GET is, without the body.

    A route whose body is large finds ``headers_only`` in its scope, and need not read it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        asked, answered = {**scope, "method": "GET", "headers_only": True}, False

        async def receive_until_answered() -> Message:
            """A stream of events has no end but the client's."""
            return {"type": "http.disconnect"} if answered else await receive()

        async def send_head(message: Message) -> None:
            nonlocal answered
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b""})
                answered = True

        try:
            await self._app(asked, receive_until_answered, send_head)
        finally:
            if "route" in asked:
                scope["route"] = asked["route"]


def allowed_methods(routes: Sequence[BaseRoute], scope: Scope) -> str:
    """The methods that a path has, as the header ``Allow`` lists them."""
    methods = {
        method
        for route in routes
        if isinstance(route, Route) and route.matches(scope)[0] is not Match.NONE
        for method in route.methods or ()
    }
    return ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))
