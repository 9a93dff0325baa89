"""Requests with an operator token begin when it is that token's turn, before any route is looked for."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from api.access import Access
from api.connections.callers import connection_of, holder_of, identify_caller
from api.connections.places import Holder
from api.operator_time import METER, Meter, OperatorTime, metered
from api.presented import Presented, presented_by, presented_in
from api.problems import answer_error
from edgewright.domain.credentials import OPERATOR_PREFIX
from edgewright.errors import Waiting


class OperatorTurns:
    """Wraps the application. What an edge sends, or somebody without credentials, passes untouched."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        secret = _operator_secret(scope)
        if secret is None:
            await self._app(scope, receive, send)
            return
        try:
            meter = await self._turn(scope, secret)
        except Waiting as error:
            self._access.metrics.limited.labels(error.code).inc()
            await answer_error(Request(scope), error)(scope, receive, send)
            return
        if meter is None:
            return
        mine = METER.set(meter)
        try:
            await metered(self._app(scope, receive, send), meter)  # type: ignore[arg-type] # a coroutine, as it is ours
        finally:
            METER.reset(mine)
            meter.end()

    async def _turn(self, scope: Scope, secret: str) -> Meter | None:
        """Whom to charge; None: the client has gone away."""
        known = self._access.operator_time.known(secret)
        if known is not None:
            identify_caller(self._access.places, scope, cluster=None, token=known)
        connection = connection_of(scope)
        with _ending_with_client(scope):
            try:
                return await self._access.operator_time.turn(secret)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if connection is None or connection.has_place or task is None:
                    raise
                task.uncancel()
                return None


@contextmanager
def _ending_with_client(scope: Scope) -> Iterator[None]:
    """Cancels the present task if the connection ends within the block."""
    connection, task = connection_of(scope), asyncio.current_task()
    if connection is None or task is None:
        yield
        return
    connection.on_end = task.cancel
    try:
        yield
    finally:
        connection.on_end = None


class KnownOperators:
    """Tells by ``Authorization`` whom a connection counts for, if the secret has been right before."""

    def __init__(self, time: OperatorTime) -> None:
        self._time = time

    def __call__(self, authorization: str) -> Holder | None:
        secret = _operators(presented_in(authorization))
        token = None if secret is None else self._time.known(secret)
        return None if token is None else holder_of(token)


def _operator_secret(scope: Scope) -> str | None:
    return _operators(presented_by(Request(scope))) if scope["type"] == "http" else None


def _operators(presented: Presented | None) -> str | None:
    """The secret, if it is spelled as an operator's."""
    if presented is None or not presented.secret.startswith(f"{OPERATOR_PREFIX}_"):
        return None
    return presented.secret
