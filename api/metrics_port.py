"""The metrics on a port of their own, for a Prometheus that has no token."""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from api.connections.bounded_http import bounded_http
from api.connections.limits import ConnectionLimits
from api.connections.places import Places
from api.metrics import CONTENT_TYPE, Metrics
from api.scrape import Scrape
from edgewright.errors import Stalled

LIMITS = ConnectionLimits(overall=64, per_address=32)
"""Connections of this port alone: whoever reaches it takes nothing of the gateway's."""


class _Server(uvicorn.Server):
    """Leaves the signals to the gateway's own server."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving_metrics(scrape: Scrape, metrics: Metrics, host: str, port: int | None) -> AsyncIterator[None]:
    """Serves ``GET /metrics`` and nothing else during the block; nothing at all if ``port`` is None.

    Raises:
        Stalled: code ``metrics_port_taken``.
    """
    if port is None:
        yield
        return
    config = uvicorn.Config(
        _answering(scrape),
        http=bounded_http(Places(LIMITS, metrics)),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
    )
    server = _Server(config)
    with _listening(host, port) as listener:
        serving = asyncio.create_task(server.serve(sockets=[listener]), name="metrics")
        try:
            yield
        finally:
            server.should_exit = True
            await serving


def _listening(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise Stalled(
            f"Metrics cannot be served at {host}, port {port} ({error.strerror}).",
            code="metrics_port_taken",
            hint="Set EDGEWRIGHT_METRICS_PORT to a free port, or unset it.",
        ) from error


def _answering(scrape: Scrape) -> ASGIApp:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.url.path != "/metrics":
            response: Response = PlainTextResponse("/metrics is all there is.\n", status_code=404)
        elif request.method not in {"GET", "HEAD"}:
            response = PlainTextResponse("GET only.\n", status_code=405)
        else:
            response = Response(await scrape.exposition(), media_type=CONTENT_TYPE)
        await response(scope, receive, send)

    return answer
