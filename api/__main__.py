"""``python -m api``: runs one gateway on the settings of its environment until SIGTERM or SIGINT."""

import gc

if __name__ == "__main__":
    gc.disable()  # until all is loaded: none of it is garbage, and looking through it takes a third of a start

import asyncio
import math
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

import structlog
import uvicorn
from fastapi import FastAPI

from api.app import build
from api.connections.bounded_http import bounded_http
from api.connections.large_blocks import keep_large_blocks_apart
from api.connections.limits import raise_descriptor_limit
from api.connections.served_certificate import ServedCertificate, refreshing
from api.live import Live
from api.metrics_port import serving_metrics
from api.operator_turns import KnownOperators
from edgewright.core_dumps import forbid_core_dumps
from edgewright.errors import EdgewrightError
from edgewright.event_loop import collecting_seldom, new_event_loop, prefer_the_loop, spare_what_is_loaded
from edgewright.logs import configure_logs
from edgewright.settings import Settings

FAREWELL_SECONDS = 10
"""How long answers that are under way may take to finish."""

_log = structlog.get_logger("edgewright.api")


class Server(uvicorn.Server):
    """Ends long answers first: otherwise it would wait for them before it tells the application to end."""

    def __init__(self, config: uvicorn.Config, app: FastAPI, *, has_tls: bool) -> None:
        super().__init__(config)
        self._gateway_app = app
        self._has_tls = has_tls

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Unlike uvicorn's own, does not raise the signal again: the database is closed, and the exit code is 0."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._gateway_app.state.live.closing.set()
        super().handle_exit(sig, frame)

    def _log_started_message(self, listeners: Sequence[socket.SocketType]) -> None:
        """Unlike uvicorn's own, knows whether there is TLS: that begins after a connection has got its place."""
        for listener in listeners:
            _log.info("listening", address=listener.getsockname()[:2], tls=self._has_tls)


async def serve(settings: Settings) -> bool:
    """Serves until told to end; returns whether it started."""
    served = _served_certificate(settings)
    async with build(settings) as app, refreshing(served):
        config = uvicorn.Config(
            app,
            host=settings.bind,
            port=settings.gateway_port,
            http=bounded_http(
                app.state.live.places,
                served.context if served else None,
                holder_known_by=KnownOperators(app.state.access.operator_time),
            ),
            ws="none",
            log_config=None,
            access_log=False,  # ours leaves query strings out
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=FAREWELL_SECONDS,
            timeout_keep_alive=math.ceil(app.state.live.places.limits.idle_seconds),
        )
        server = Server(config, app, has_tls=served is not None)
        live: Live = app.state.live
        spare_what_is_loaded()
        metrics = serving_metrics(live.scrape, live.metrics, settings.metrics_bind, settings.metrics_port)
        async with metrics, collecting_seldom():
            await server.serve()
        return server.started


def _served_certificate(settings: Settings) -> ServedCertificate | None:
    """What connections are secured with; None: plain http.

    Raises:
        Stalled: code ``tls_unusable``.
    """
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    return ServedCertificate(settings.tls_cert, settings.tls_key)


def main() -> int:
    """The exit code: 0 after a clean end, 1 if the gateway could not start."""
    gc.freeze()
    gc.enable()
    forbid_core_dumps()
    prefer_the_loop()
    keep_large_blocks_apart()
    settings = Settings()
    configure_logs(settings.log_level)
    raise_descriptor_limit()
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            return 0 if runner.run(serve(settings)) else 1
    except EdgewrightError as error:
        _log.critical("cannot start", detail=error.detail, code=error.code, hint=error.hint)
        return 1


if __name__ == "__main__":
    sys.exit(main())
