"""Whom a connection carries a request of, for those who find that out: by a credential, or from a trusted proxy."""

from uuid import UUID

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from api.connections.places import Connection, Places, Standing
from api.connections.refusals import TooManyConnections
from api.problems import answer_error

SCOPE_KEY = "connection"
"""Where the connection stands in a scope's state."""


def connection_of(scope: Scope) -> Connection | None:
    """The connection of a request; None: it came by none, as in tests."""
    connection: Connection | None = scope.get("state", {}).get(SCOPE_KEY)
    return connection


def identify_caller(places: Places, scope: Scope, cluster: UUID | None, token: str | None = None) -> None:
    """The caller of a request has authenticated.

    Args:
        cluster: whose edge it is; None: an operator.
        token: ID of the operator's token, or of the one that opened the session.

    Raises:
        TooManyConnections: operators, that token, or that cluster, have too many.
    """
    connection = connection_of(scope)
    if connection is not None:
        if cluster is None:
            places.identify(connection, Standing.OPERATOR, None if token is None else holder_of(token))
        else:
            places.identify(connection, Standing.EDGE, cluster)


def holder_of(token: str) -> str:
    """What connections of an operator's token count for.

    Args:
        token: its ID.
    """
    return f"token {token}"


class ProxiedCallers:
    """What a trusted proxy passes on counts for whoever asked the proxy.

    Wraps the application, inside of what reads ``X-Forwarded-For`` of trusted proxies into ``scope["client"]``.
    """

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
