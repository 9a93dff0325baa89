"""What every answer has: a request ID, careful headers, a line in the log, a place in the metrics, a span.

Written as plain ASGI, so that streams stay streams and a handler is not cancelled behind its back.
"""

import asyncio
import re
import time
import uuid
from collections.abc import Iterable, MutableMapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import structlog
from opentelemetry.trace import INVALID_SPAN, NoOpTracer, Span, SpanKind, StatusCode, Tracer
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.status import HTTP_500_INTERNAL_SERVER_ERROR
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.log_context import BOUND, about_path
from api.metrics import Metrics
from api.problems import stopping, unexpected
from edgewright.adapters.tracing import TRACEPARENT, span_before

RawHeader = tuple[bytes, bytes]
"""Name and value as they are sent; Starlette writes names in lower case."""
REQUEST_ID_HEADER = "X-Request-Id"
UNKNOWN_ROUTE = "(none)"

_SECRET = re.compile(r"ew[rfa]?_[0-9A-Za-z_-]+")
"""What is spelled like a secret of ours: a badly quoted URL brings its token in the path."""
_SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_REQUEST_ID = REQUEST_ID_HEADER.lower().encode()
_CAREFUL_HEADERS: tuple[RawHeader, ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
)
_CLOSED: RawHeader = (
    b"content-security-policy",
    b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
)
"""The content policy of HTML that does not bring one of its own."""
_NO_SPAN = nullcontext(INVALID_SPAN)
_log = structlog.get_logger("edgewright.access")


class Envelope:
    """Wraps the whole application.

    Args:
        metrics: where requests are counted.
        tracer: makes a span of each. It holds method, route and status: never the path or the query string, which
            hold names and registration tokens.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, tracer: Tracer) -> None:
        self._app = app
        self._metrics = metrics
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        request_id = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        answered: MutableMapping[str, int] = {}

        async def send_enveloped(message: Message) -> None:
            if message["type"] == "http.response.start":
                answered["status"] = message["status"]
                message["headers"] = _enveloped(message.get("headers", ()), request_id)
            await send(message)

        bound = structlog.contextvars.bind_contextvars(request_id=request_id)
        with self._span(scope) as span:
            about_path(scope["path"])
            try:
                await self._app(scope, receive, send_enveloped)
            except asyncio.CancelledError:
                # The server does so at the end of its patience with answers that are under way, and would send a
                # bare 500 itself.
                if answered:
                    raise
                await stopping(Request(scope))(scope, receive, send_enveloped)
            except Exception as error:  # noqa: BLE001 - the last resort: no text of an unknown error leaves the process
                answer = unexpected(Request(scope), error)
                if answered:
                    raise BrokenOff from None
                await answer(scope, receive, send_enveloped)
            finally:
                held: float = scope["state"].get("held", 0.0)
                self._note(scope, answered.get("status", 0), time.perf_counter() - started - held, span)
                structlog.contextvars.unbind_contextvars(*BOUND)
                structlog.contextvars.reset_contextvars(**bound)

    def _span(self, scope: Scope) -> AbstractContextManager[Span]:
        if isinstance(self._tracer, NoOpTracer):
            return _NO_SPAN  # a span that does nothing costs a fifth of this whole envelope
        return self._tracer.start_as_current_span(
            "HTTP",
            context=span_before(Headers(scope=scope).get(TRACEPARENT)),
            kind=SpanKind.SERVER,
            record_exception=False,  # the text of an exception may hold anything
            set_status_on_exception=False,
        )

    def _note(self, scope: Scope, status: int, seconds: float, span: Span) -> None:
        route = getattr(scope.get("route"), "path_format", UNKNOWN_ROUTE)
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        if span.is_recording():
            _describe(span, method, route, status, scope["state"]["request_id"])
        self._metrics.requests.labels(method, route, str(status)).inc()
        self._metrics.duration.labels(method, route).observe(seconds)
        # The path only: query strings hold registration tokens.
        _log.info(
            "request",
            method=method,
            path=_SECRET.sub("***", scope["path"]),
            status=status,
            milliseconds=round(seconds * 1000, 1),
            client=_client(scope),
        )


def _enveloped(headers: Iterable[RawHeader], request_id: str) -> list[RawHeader]:
    """Headers of an answer with those that every answer has. What it says itself stays, but for the request ID."""
    enveloped = [header for header in headers if header[0] != _REQUEST_ID]
    said = dict(enveloped)
    enveloped.append((_REQUEST_ID, request_id.encode()))
    enveloped += [header for header in _CAREFUL_HEADERS if header[0] not in said]
    if said.get(b"content-type", b"").startswith(b"text/html") and _CLOSED[0] not in said:
        enveloped.append(_CLOSED)
    return enveloped


def _describe(span: Span, method: str, route: str, status: int, request_id: str) -> None:
    span.update_name(f"{method} {route}")
    span.set_attributes({"http.request.method": method, "http.route": route, "http.response.status_code": status})
    span.set_attribute("edgewright.request_id", request_id)
    if status == 0 or status >= HTTP_500_INTERNAL_SERVER_ERROR:
        span.set_status(StatusCode.ERROR)


class BrokenOff(ConnectionError):
    """An answer that had begun cannot be finished; the connection is closed so that the client notices."""


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def _request_id(scope: Scope) -> str:
    given = Headers(scope=scope).get(REQUEST_ID_HEADER, "")
    sane = _SANE_ID.fullmatch(given) and not _SECRET.search(given)
    return given if sane else uuid.uuid4().hex


def _client(scope: Scope) -> Any:
    return scope["client"][0] if scope.get("client") else None
