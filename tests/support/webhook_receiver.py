"""The operator's own system: a real HTTP server that takes notifications, or does anything but that."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

from standardwebhooks import Webhook

from edgewright.adapters.webhook.signature import shown
from edgewright.ports.notifications import Webhooks
from edgewright.ports.webhook_delivery import SigningSecrets


@dataclass(frozen=True)
class Received:
    """One request. ``headers``: names in lower case."""

    headers: Mapping[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found

    @property
    def type(self) -> str:
        return str(self.document["type"])

    @property
    def cluster(self) -> str:
        return str(self.document["data"]["cluster"]["name"])

    def verified_with(self, secret: str) -> Any:
        """The document, if the signature is right; the library raises if it is not."""
        return Webhook(secret).verify(self.body, dict(self.headers))


Answering = Callable[[Received], int]
"""The status that a request is answered with; it may take its time."""


def takes(_request: Received) -> int:
    return 204


@dataclass
class Receiver:
    """``taken``: what was answered with 2xx; ``asked``: everything that came; each in order."""

    port: int = 0
    tls: ssl.SSLContext | None = None
    answering: Answering = takes
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[Received] = field(default_factory=list)
    taken: list[Received] = field(default_factory=list)
    open_again: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}/hook"

    def hangs(self, _request: Received) -> int:
        """Answers when the test is over, or says so."""
        self.open_again.wait()
        return 204

    def types(self) -> list[str]:
        return [each.type for each in self.taken]

    @contextmanager
    def serving(self) -> Iterator["Receiver"]:
        """Listens on its port, and on the same one when it comes back."""
        server = _ReceiverServer(("127.0.0.1", self.port), _handler_of(self))
        self.port = server.server_port
        if self.tls:
            server.socket = self.tls.wrap_socket(server.socket, server_side=True)
        self.open_again.clear()
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield self
        finally:
            self.open_again.set()
            server.shutdown()
            server.server_close()
            thread.join()


async def set_webhook(webhooks: Webhooks, signing: SigningSecrets, url: str) -> str:
    """Sets the webhook, as the gateway does; returns its secret."""
    identity = uuid4()
    secret = signing.secret_of(identity)
    await webhooks.put(identity, url, sha256(secret.reveal()).digest(), actor="token:test")
    return shown(secret)


class _ReceiverServer(ThreadingHTTPServer):
    daemon_threads = False  # the end of the block waits for what is being answered
    allow_reuse_address = True


def _handler_of(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class ReceiverHandler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            request = Received({name.lower(): value for name, value in self.headers.items()}, body)
            receiver.asked.append(request)
            status = receiver.answering(request)
            if 200 <= status < 300:
                receiver.taken.append(request)
            try:
                self.send_response(status)
                for name, value in receiver.headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", "0")
                self.end_headers()
            except OSError:
                return  # who asked has gone

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    return ReceiverHandler
