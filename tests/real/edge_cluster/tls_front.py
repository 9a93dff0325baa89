"""A door of the centre with TLS: takes connections under a certificate of its own, and passes on what comes."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from edge_cluster.certificates import Identity

PIECE = 65536


@contextmanager
def tls_front(identity: Identity, port: int) -> Iterator[str]:
    """The URL of the front of whoever listens on a port of this machine, until the end of the context."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_serve, args=(listener, context, port), daemon=True).start()
        try:
            yield f"https://localhost:{listener.getsockname()[1]}"
        finally:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)


def _serve(listener: socket.socket, context: ssl.SSLContext, port: int) -> None:
    while True:
        try:
            taken, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_pass_on, args=(taken, context, port), daemon=True).start()


def _pass_on(taken: socket.socket, context: ssl.SSLContext, port: int) -> None:
    with suppress(OSError), taken:
        taken.settimeout(60)
        with (
            context.wrap_socket(taken, server_side=True) as outer,
            socket.create_connection(("127.0.0.1", port), timeout=60) as inner,
        ):
            back = threading.Thread(target=_copy, args=(inner, outer), daemon=True)
            back.start()
            _copy(outer, inner)
            back.join(60)


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(PIECE):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
