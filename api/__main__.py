"""``python -m api``: runs one gateway on the settings of its environment until SIGTERM or SIGINT."""

import asyncio
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import structlog
import uvicorn
from fastapi import FastAPI

from api.app import build
from api.metrics_port import serving_metrics
from edgewright.errors import EdgewrightError
from edgewright.event_loop import new_event_loop
from edgewright.logs import configure_logs
from edgewright.settings import Settings

FAREWELL_SECONDS = 10
"""How long answers that are under way may take to finish."""
KEEP_ALIVE_SECONDS = 75
"""Longer than proxies keep idle connections, so that they close them first."""


class Server(uvicorn.Server):
    """Ends long answers first: otherwise it would wait for them before it tells the application to end."""

    def __init__(self, config: uvicorn.Config, app: FastAPI) -> None:
        super().__init__(config)
        self._gateway_app = app

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


async def serve(settings: Settings) -> bool:
    """Serves until told to end; returns whether it started."""
    async with build(settings) as app:
        config = uvicorn.Config(
            app,
            host=settings.bind,
            port=settings.gateway_port,
            ssl_certfile=settings.tls_cert,
            ssl_keyfile=settings.tls_key,
            http="httptools",
            ws="none",
            log_config=None,
            access_log=False,  # ours leaves query strings out
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=FAREWELL_SECONDS,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
        )
        server = Server(config, app)
        async with serving_metrics(app.state.live.scrape, settings.metrics_bind, settings.metrics_port):
            await server.serve()
        return server.started


def main() -> int:
    """The exit code: 0 after a clean end, 1 if the gateway could not start."""
    settings = Settings()
    configure_logs(settings.log_level)
    try:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            return 0 if runner.run(serve(settings)) else 1
    except EdgewrightError as error:
        structlog.get_logger("edgewright.api").critical(
            "cannot start", detail=error.detail, code=error.code, hint=error.hint
        )
        return 1


if __name__ == "__main__":
    sys.exit(main())
