"""A centre that answers what a test wants, over real HTTP, and a clock by which hours pass at once."""

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

START = datetime(2026, 1, 1, tzinfo=UTC)
DIGEST = "Edgewright-Status-Digest"


@dataclass(frozen=True)
class ReceivedRequest:
    """What came in. ``caller_port``: two requests over one connection have the same."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    caller_port: int


@dataclass(frozen=True)
class Reply:
    """What goes out. ``body``: JSON, or bytes as they are."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


def answer(request: ReceivedRequest, **wanted: Any) -> Reply:
    """What a centre answers to a heartbeat."""
    return Reply(200, {"state": "active", "interval": 100, "nonce": request.body["nonce"], **wanted})


def taken() -> Reply:
    """What a centre answers to a status."""
    return Reply(204, headers={DIGEST: "digest"})


def well(request: ReceivedRequest) -> Reply:
    """What a centre answers on a good day."""
    return answer(request) if request.path == "/v1/agent/heartbeat" else taken()


@dataclass
class ScriptedCentre:
    """``reply`` is asked for each request, and may be changed at any time."""

    url: str
    reply: Callable[[ReceivedRequest], Reply]
    requests: list[ReceivedRequest] = field(default_factory=list)

    def of(self, path: str) -> list[ReceivedRequest]:
        return [request for request in self.requests if request.path == path]

    @property
    def beats(self) -> list[ReceivedRequest]:
        return self.of("/v1/agent/heartbeat")

    @property
    def statuses(self) -> list[ReceivedRequest]:
        return self.of("/v1/agent/status")


@contextmanager
def scripted_centre(
    reply: Callable[[ReceivedRequest], Reply] = well, *, tls: ssl.SSLContext | None = None
) -> Iterator[ScriptedCentre]:
    """Serves until the end of the context."""

    class ScriptedHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16  # an answer in two packets would wait 40 ms for the other side between them
        disable_nagle_algorithm = True

        def handle_any(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            content = self.rfile.read(length)
            body = json.loads(content) if content else None
            request = ReceivedRequest(
                self.command, self.path, dict(self.headers.items()), body, self.client_address[1]
            )
            centre.requests.append(request)
            reply = centre.reply(request)
            payload = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            payload = b"" if reply.body is None else payload
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.status != 204:
                self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815 - named by the standard library

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by the standard library
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), ScriptedHandler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    scheme = "http" if tls is None else "https"
    centre = ScriptedCentre(f"{scheme}://127.0.0.1:{server.server_port}", reply)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield centre
    finally:
        server.shutdown()
        server.server_close()


class TimeIsUp(Exception):
    """The clock has come to its end, and with it the test."""


class QuickClock:
    """Whoever sleeps lets that time pass at once. Ends with ``TimeIsUp``.

    Args:
        lasts: seconds.
        each_sleep: called before each sleep.
    """

    def __init__(self, lasts: float, each_sleep: Callable[[], object] = lambda: None) -> None:
        self._lasts = lasts
        self._each_sleep = each_sleep
        self._passed = 0.0
        self.sleeps: list[float] = []

    def monotonic(self) -> float:
        return self._passed

    def now(self) -> datetime:
        return START + timedelta(seconds=self._passed)

    async def sleep(self, seconds: float, *, until: asyncio.Event | None = None) -> None:
        self._each_sleep()
        await asyncio.sleep(0)
        if until is not None and until.is_set():
            return
        if self._passed >= self._lasts:
            raise TimeIsUp
        self.sleeps.append(seconds)
        self._passed += seconds
