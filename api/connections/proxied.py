"""What a trusted proxy passes on counts for whoever asked the proxy."""

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from api.connections.callers import connection_of
from api.connections.places import Places
from api.connections.refusals import TooManyConnections
from api.problems import answer_error


class ProxiedCallers:
    """Wraps the application, inside of what reads ``X-Forwarded-For`` of trusted proxies into ``scope["client"]``."""

    def __init__(self, app: ASGIApp, places: Places) -> None:
        self._app = app
        self._places = places

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = connection_of(scope)
        if connection is None or not connection.is_proxy:
            await self._app(scope, receive, send)
            return
        asked_from = scope["client"][0]
        try:
            self._places.act_for(connection, None if asked_from == connection.address else asked_from)
        except TooManyConnections as error:
            await answer_error(Request(scope), error)(scope, receive, send)
            return
        try:
            await self._app(scope, receive, send)
        finally:
            self._places.act_for(connection, None)
