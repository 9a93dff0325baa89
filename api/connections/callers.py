"""Whom a connection carries a request of, for those who find that out."""

from uuid import UUID

from starlette.types import Scope

from api.connections.places import Connection, Places, Standing

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
