"""What stands between a program and the API server, and has the program killed right after what it has changed."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from edge_cluster.cluster import Cluster

CHANGES = frozenset({"PATCH", "DELETE"})
PASSED_ON = ("Authorization", "Accept", "Content-Type", "User-Agent")


@dataclass
class Interruptions:
    """The first process is killed after its first change, the next one after its second, and so on.

    Args:
        port: that stands for the API server's.
        kills: how many there were.
    """

    port: int
    kill: Callable[[], None]
    kills: int = 0
    _left: int = 1
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def ended_by_a_kill(self) -> bool:
        """Whether nothing was changed since the last one, so that nothing was left to be started for."""
        return self._left == self.kills + 1

    def changed(self) -> None:
        """Something was changed."""
        with self._lock:
            self._left -= 1
            if self._left == 0:
                self.kills += 1
                self._left = self.kills + 1
                self.kill()


@contextmanager
def interrupting(cluster: Cluster, kill: Callable[[], None]) -> Iterator[Interruptions]:
    """Hands everything on, until the end of the context.

    Args:
        kill: ends the program at once; asked for before it gets the answer to a change.
    """
    trusted = ssl.create_default_context(cafile=cluster.authority.identity.certificate)
    beyond = httpx.Client(base_url=cluster.url, verify=trusted, trust_env=False, timeout=30)

    class InterruptingHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16  # an answer in two packets would wait 40 ms for the other side between them
        disable_nagle_algorithm = True

        def hand_on(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {name: self.headers[name] for name in PASSED_ON if name in self.headers}
            answer = beyond.request(self.command, self.path, content=content, headers=headers)
            if self.command in CHANGES and answer.is_success:
                interruptions.changed()
            with suppress(OSError):  # who asked is dead
                self.send_response(answer.status_code)
                self.send_header("Content-Type", answer.headers.get("Content-Type", ""))
                self.send_header("Content-Length", str(len(answer.content)))
                self.end_headers()
                self.wfile.write(answer.content)

        do_GET = do_PATCH = do_DELETE = hand_on  # noqa: N815 - named by the standard library

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - named by the standard library
            pass

    identity = cluster.authority.server("interrupting")
    offered = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    offered.load_cert_chain(identity.certificate, identity.key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), InterruptingHandler)
    server.daemon_threads = True
    server.socket = offered.wrap_socket(server.socket, server_side=True)
    interruptions = Interruptions(server.server_port, kill)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield interruptions
    finally:
        server.shutdown()
        server.server_close()
        beyond.close()
