"""All that a bootstrap script asks of the API server and of the centre, one request after the other, held at will.

A script reaches both through one gate: kubectl by its kubeconfig, curl by its proxy. What it is asked goes on to the
real ones, and their answers come back as they are.
"""

from __future__ import annotations

import json
import ssl
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum, auto
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from edge_cluster.cluster import Cluster

BY_HOP = frozenset({"connection", "host", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"})
DISCOVERY = ("/api?", "/apis?", "/api/v1?", "/openapi/")
"""What kubectl asks of the API server as often as its own cache makes it."""
PIECE = 65536
HELD_SECONDS = 600.0


class GateVerdict(Enum):
    """On one request."""

    GO = auto()
    LOSE_ANSWER = auto()
    DROP = auto()


@dataclass(frozen=True)
class GateRequest:
    """One request."""

    method: str
    path: str
    tries: bool = False
    """It is a dry run, or a question about rights."""

    @property
    def writes(self) -> bool:
        """Whether it changes the Kubernetes cluster, or registers at the centre."""
        return self.method != "GET" and not self.tries

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass
class Gate:
    """Where one script at a time is counted, and stops."""

    cluster: Cluster
    port: int = 0
    requests: list[GateRequest] = field(default_factory=list)
    """Since it was shut last, but those of discovery."""
    _at: int = 0
    _loses: bool = False
    _drops: bool = False
    _reached: threading.Event = field(default_factory=threading.Event)
    _open: threading.Event = field(default_factory=threading.Event)
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def shut(self, at: int, *, loses: bool = False) -> None:
        """The next script stops before its request of that number, from 1; 0: before none.

        Args:
            loses: it does not stop: that request is done, and its answer is lost.
        """
        self.open()
        with self._turn:
            self.requests, self._at, self._loses, self._drops = [], at, loses, False
            self._reached, self._open = threading.Event(), threading.Event()

    def open(self) -> None:
        """Whatever stands still goes on."""
        self._open.set()

    def drop(self) -> None:
        """What stands still is not asked: who asked was killed."""
        self._drops = True
        self.open()

    @property
    def reached(self) -> bool:
        """Whether the script stands still, or an answer was lost."""
        return self._reached.is_set()

    def judge(self, asked: GateRequest) -> GateVerdict:
        """Returns when it is clear what becomes of a request."""
        if any(f"{asked.path}?".startswith(each) for each in DISCOVERY):
            return GateVerdict.GO
        with self._turn:
            self.requests.append(asked)
            held = len(self.requests) == self._at
            reached, opened, loses = self._reached, self._open, self._loses
        if not held:
            return GateVerdict.GO
        reached.set()
        if loses:
            return GateVerdict.LOSE_ANSWER
        opened.wait(HELD_SECONDS)
        return GateVerdict.DROP if self._drops else GateVerdict.GO


@contextmanager
def gate(cluster: Cluster, config: Path) -> Iterator[Gate]:
    """A gate, until the end of the context.

    Args:
        config: kubeconfig of an administrator who comes through it; it is written.
    """
    made = Gate(cluster)

    class GateHandler(RelayHandler):
        gate = made
        trusted = ssl.create_default_context(cafile=cluster.authority.identity.certificate)

    admin = cluster.folder / "pki" / "admin"
    GateHandler.trusted.load_cert_chain(admin.with_suffix(".crt"), admin.with_suffix(".key"))
    server = GateServer(("127.0.0.1", 0), GateHandler)
    made.port = server.server_address[1]
    entry = {"name": "gate", "cluster": {"server": f"http://127.0.0.1:{made.port}"}}
    context = {"name": "gate", "context": {"cluster": "gate", "user": "admin", "namespace": "default"}}
    config.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [entry],
                "users": [{"name": "admin", "user": {}}],
                "contexts": [context],
                "current-context": "gate",
            }
        )
    )
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield made
    finally:
        made.open()
        server.shutdown()
        thread.join()
        server.server_close()


class GateServer(ThreadingHTTPServer):
    """Says nothing of callers that were killed."""

    daemon_threads = True

    def handle_error(self, *_caller: object) -> None:
        """They are killed on purpose."""


class RelayHandler(BaseHTTPRequestHandler):
    """One connection of a script, and one to whom it asks."""

    gate: Gate
    trusted: ssl.SSLContext
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body go out by themselves, and kubectl would wait 40 ms for the body
    _onwards: HTTPConnection | None = None

    def relay(self) -> None:
        """Asks what it was asked, and answers what it is answered."""
        body = self._asked_with()
        to, path = urlsplit(self.path), self.path
        if to.netloc:  # curl, as it asks a proxy
            path = f"{to.path}?{to.query}" if to.query else to.path
        tries = b'"dryRun":["All"]' in body or "dryRun=All" in path or "subjectaccessreviews" in path
        shown = to.path if to.netloc else path
        verdict = self.gate.judge(GateRequest(self.command, shown, tries))
        if verdict is GateVerdict.DROP:
            self.close_connection = True
            return
        answer = self._answer(to.netloc, path, body)
        if verdict is GateVerdict.LOSE_ANSWER:
            answer.read()
            self.close_connection = True
            return
        self._pass_on(answer)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = relay  # noqa: N815 - http.server's own names

    def _asked_with(self) -> bytes:
        """kubectl sends in pieces what it reads from its standard input."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _answer(self, centre: str, path: str, body: bytes) -> HTTPResponse:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in BY_HOP}
        for last in (False, True):
            onwards = self._connection(centre)
            try:
                onwards.request(self.command, path, body or None, headers)
                return onwards.getresponse()
            except (HTTPException, OSError):
                # The API server has closed a connection that was idle while the script stood still.
                self._onwards = None
                if last:
                    raise
        raise AssertionError

    def _connection(self, centre: str) -> HTTPConnection:
        if self._onwards is None:
            self._onwards = (
                HTTPConnection(centre)
                if centre
                else HTTPSConnection("127.0.0.1", self.gate.cluster.port, context=self.trusted)
            )
        return self._onwards

    def _pass_on(self, answer: HTTPResponse) -> None:
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.headers.items():
            if name.lower() not in BY_HOP:
                self.send_header(name, value)
        if answer.headers.get("Content-Length") is not None or answer.status in {204, 304}:
            self.end_headers()
            self.wfile.write(answer.read())
            return
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while piece := answer.read1(PIECE):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *args: object) -> None:
        """Quiet: what was asked is in the gate."""
