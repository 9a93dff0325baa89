"""What speaks to a gateway byte by byte, as no HTTP client would."""

import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

PATIENCE_SECONDS = 60.0
"""For what has to happen; far longer than any deadline of a test."""

LENGTH = re.compile(rb"^content-length: (\d+)\r\n(?:.+\r\n)*\r\n", re.MULTILINE | re.IGNORECASE)


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
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            self.socket = context.wrap_socket(self.socket)

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
            while piece := self.socket.recv(65536):
                read += piece
        except (ConnectionError, ssl.SSLError):
            pass
        return read

    def read_some(self) -> bytes:
        """What the gateway says next."""
        return self.socket.recv(65536)

    def read_answer(self) -> bytes:
        """One answer that says how long it is."""
        read = b""
        while not (match := LENGTH.search(read)) or len(read) < match.end() + int(match[1]):
            piece = self.read_some()
            assert piece, read
            read += piece
        return read

    @property
    def is_closed(self) -> bool:
        """Whether the gateway has closed the connection by now."""
        self.socket.setblocking(False)
        try:
            return self.socket.recv(1, socket.MSG_PEEK) == b""
        except (BlockingIOError, ssl.SSLWantReadError):
            return False
        except OSError:
            return True
        finally:
            self.socket.settimeout(PATIENCE_SECONDS)

    def close(self) -> None:
        self.socket.close()


@contextmanager
def dripping(client: RawClient, piece: bytes, every: float) -> Iterator[None]:
    """Sends a piece now and again until the end of the context, or until the gateway has had enough."""
    enough = threading.Event()

    def drip() -> None:
        try:
            while not enough.wait(every):
                client.send(piece)
        except OSError:
            pass

    thread = threading.Thread(target=drip, daemon=True)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()
