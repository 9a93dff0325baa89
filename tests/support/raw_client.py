"""What speaks to a gateway byte by byte, as no HTTP client would."""

import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from urllib.parse import urlsplit

PATIENCE_SECONDS = 60.0
"""For what has to happen; far longer than any deadline of a test."""

LENGTH = re.compile(rb"^content-length: (\d+)\r\n(?:.+\r\n)*\r\n", re.MULTILINE | re.IGNORECASE)


@cache
def unverified() -> ssl.SSLContext:
    """One for all connections of a process: reading the machine's authorities takes longer than a handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


class RawClient:
    """One connection.

    Args:
        secured: whether a TLS handshake is done; with https it is left out for who wants to keep silent.
        source: the own address.
    """

    def __init__(self, url: str, *, secured: bool = True, source: str = "127.0.0.1") -> None:
        where = urlsplit(url)
        assert where.hostname
        assert where.port
        self.socket: socket.socket = socket.create_connection(
            (where.hostname, where.port), timeout=PATIENCE_SECONDS, source_address=(source, 0)
        )
        if where.scheme == "https" and secured:
            self.socket = unverified().wrap_socket(self.socket)
        self._ahead = b""

    def send(self, text: bytes) -> None:
        self.socket.sendall(text)

    def send_all_of(self, pieces: Iterator[bytes]) -> int:
        """Sends until the other side does not want more; returns how many bytes it took."""
        sent = 0
        try:
            for piece in pieces:
                self.socket.sendall(piece)
                sent += len(piece)
        except OSError:
            pass
        return sent

    def read_until_closed(self) -> bytes:
        """What the gateway says until it closes the connection; raises if it never does."""
        read = b""
        try:
            while piece := self.read_some():
                read += piece
        except (ConnectionError, ssl.SSLError):
            pass
        return read

    def read_some(self) -> bytes:
        """What the gateway says next."""
        ahead, self._ahead = self._ahead, b""
        return ahead or self.socket.recv(65536)

    def read_answer(self) -> bytes:
        """One answer that says how long it is."""
        read = b""
        while not (match := LENGTH.search(read)) or len(read) < match.end() + int(match[1]):
            piece = self.read_some()
            assert piece, read
            read += piece
        return read

    @property
    def has_answer(self) -> bool:
        """Whether there is something to read; with TLS, sockets are readable without it."""
        self._look()
        return bool(self._ahead)

    @property
    def is_closed(self) -> bool:
        """Whether the gateway has closed the connection by now, and has said nothing before."""
        return self._look() and not self._ahead

    def _look(self) -> bool:
        """Reads what has arrived, without waiting; returns whether the gateway has closed the connection."""
        self.socket.setblocking(False)
        try:
            while piece := self.socket.recv(65536):
                self._ahead += piece
        except (BlockingIOError, ssl.SSLWantReadError):
            return False
        except OSError:
            return True
        finally:
            self.socket.settimeout(PATIENCE_SECONDS)
        return True

    def close(self) -> None:
        self.socket.close()


def half_a_handshake(url: str) -> bytes:
    """The first half of what a client says when it begins TLS."""
    said = ssl.MemoryBIO()
    hand = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), said, server_hostname=urlsplit(url).hostname)
    with suppress(ssl.SSLWantReadError):
        hand.do_handshake()
    return said.read()[:100]


@contextmanager
def dripping(client: RawClient, pieces: Iterator[bytes], every: float) -> Iterator[None]:
    """Sends a piece now and again until the end of the context, or until the gateway has had enough."""
    enough = threading.Event()

    def drip() -> None:
        try:
            for piece in pieces:
                client.send(piece)
                if enough.wait(every):
                    break
        except OSError:
            pass

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()
