"""A line between a client and a server that can be cut and mended."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PIECE = 65536


class FlappingLine:
    """Carries bytes between those who connect and a server on this machine, while it is whole."""

    def __init__(self, port: int) -> None:
        self._server = port
        self._door = socket.create_server(("127.0.0.1", 0))
        self._whole = True
        self._ends: set[socket.socket] = set()
        self._lock = threading.Lock()
        self.port: int = self._door.getsockname()[1]
        threading.Thread(target=self._let_in, daemon=True).start()

    def cut(self) -> None:
        """Breaks every connection; new ones are broken at once."""
        with self._lock:
            self._whole = False
            for end in self._ends:
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            self._ends.clear()

    def mend(self) -> None:
        with self._lock:
            self._whole = True

    def close(self) -> None:
        self.cut()
        self._door.close()

    def _let_in(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._door.accept()
                with self._lock:
                    if not self._whole:
                        client.close()
                        continue
                    server = socket.create_connection(("127.0.0.1", self._server))
                    self._ends |= {client, server}
                for here, there in ((client, server), (server, client)):
                    threading.Thread(target=self._carry, args=(here, there), daemon=True).start()

    @staticmethod
    def _carry(here: socket.socket, there: socket.socket) -> None:
        with suppress(OSError):
            while piece := here.recv(PIECE):
                there.sendall(piece)
        for end in (here, there):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextmanager
def flapping_line(port: int) -> Iterator[FlappingLine]:
    """A whole line to a port; nothing of it is left at the end."""
    line = FlappingLine(port)
    try:
        yield line
    finally:
        line.close()
