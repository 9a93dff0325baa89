"""A place on this machine where no page in a browser gets to.

Browsers open no http URL on certain ports, because other protocols live there: "port blocking" of the Fetch standard
(https://fetch.spec.whatwg.org/#port-blocking), which holds for pages, scripts, forms and images alike. Programs of
this machine do get there, as they get to Temporal's own port.
"""

import errno
import random
import socket

from edgewright.cli.failures import CliError, ExitCode

BLOCKED = (2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080)
"""Those above 1023 that every browser has blocked since 2021."""

_TRIES = 50


def hidden_address() -> tuple[str, int]:
    """A free address and port of the loopback interface; a random address of 127.0.0.0/8 where the system has all.

    Raises:
        CliError: none is free.
    """
    for _ in range(_TRIES):
        address = f"127.{random.randint(16, 254)}.{random.randint(1, 254)}.{random.randint(1, 254)}"  # noqa: S311 - no secret
        port = random.choice(BLOCKED)  # noqa: S311 - the same
        try:
            _bind(address, port)
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                break  # this system has 127.0.0.1 only
            continue
        return address, port
    for port in random.sample(BLOCKED, k=len(BLOCKED)):
        try:
            _bind("127.0.0.1", port)
        except OSError:
            continue
        return "127.0.0.1", port
    raise CliError(
        "None of the ports that browsers do not open is free, and Temporal's Web UI has to hide behind one.",
        f"Free one of 127.0.0.1's {', '.join(map(str, BLOCKED))}.",
        ExitCode.REFUSED,
    )


def _bind(address: str, port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
