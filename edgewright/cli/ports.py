"""Ports of this machine: which are free, who has those that are not, and where no page in a browser gets to."""

import errno
import random
import socket
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import MappingProxyType

import psutil

from edgewright.cli.failures import CliError, ExitCode

FREE = range(12000, 20000)
"""Where a free port is looked for: below those that the kernel gives to clients, of whom one could have it before the
part that it is meant for has come up."""
BLOCKED = (2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080)
"""Ports above 1023 that every browser has blocked since 2021.

Browsers open no http URL on certain ports, because other protocols live there: "port blocking" of the Fetch standard
(https://fetch.spec.whatwg.org/#port-blocking), which holds for pages, scripts, forms and images alike. Programs of
this machine do get there, as they get to Temporal's own port.
"""
_TRIES = 50
"""At random addresses, before 127.0.0.1."""


@dataclass(frozen=True)
class PortWish:
    """A port that a part needs.

    Args:
        part: who needs it, as in "the gateway needs it".
        variable: the setting that chooses it.
        address: the address that it is bound on.
        port: the number, or 0 for any free one.
    """

    part: str
    variable: str
    address: str
    port: int


def resolve_ports(wishes: Sequence[PortWish], before: Mapping[str, int] = MappingProxyType({})) -> dict[str, int]:
    """The port of each wish, by the name of its setting; all of them are free at this moment.

    Args:
        before: what the last run got; a wish for any free port gets the same one again if it can.

    Raises:
        CliError: one is taken, not allowed, or wished for twice; the sentence names who has it and what to set.
    """
    _refuse_twins(wishes)
    with ExitStack() as held:
        ports = {}
        # Given ports first, and all are held until the last is found: no free one is picked twice.
        for wish in sorted(wishes, key=lambda wish: wish.port == 0):
            listener = held.enter_context(_listen_again(wish, before.get(wish.variable, 0)) or _listen(wish))
            ports[wish.variable] = int(listener.getsockname()[1])
        return ports


def listener_pid(port: int) -> int | None:
    """The process that listens on a TCP port; None if none does or this user may not know."""
    try:
        connections = psutil.net_connections(kind="tcp")
    except (psutil.Error, OSError):
        return None
    listening = (c for c in connections if c.status == psutil.CONN_LISTEN and c.laddr and c.laddr.port == port)
    return next((connection.pid for connection in listening if connection.pid is not None), None)


def listener_on(port: int) -> str | None:
    """Who listens on a TCP port, as ``name (pid 12)``; None as above."""
    pid = listener_pid(port)
    if pid is None:
        return None
    try:
        return f"{psutil.Process(pid).name()} (pid {pid})"
    except psutil.Error:
        return f"pid {pid}"


def _refuse_twins(wishes: Sequence[PortWish]) -> None:
    first: dict[int, PortWish] = {}
    for wish in wishes:
        if wish.port and wish.port in first:
            raise CliError(
                f"{first[wish.port].variable} and {wish.variable} are both {wish.port}.",
                "Give each its own port; 0 picks a free one.",
                ExitCode.USAGE,
            )
        first[wish.port] = wish


def _listen_again(wish: PortWish, port: int) -> socket.socket | None:
    if wish.port or not port:
        return None
    try:
        return _listener(wish.address, port)
    except OSError:
        return None


def _listen(wish: PortWish) -> socket.socket:
    for port in random.sample(FREE, k=100) if not wish.port else ():
        try:
            return _listener(wish.address, port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                break
    try:
        return _listener(wish.address, wish.port)
    except socket.gaierror as error:
        raise _bad_address(wish) from error
    except OSError as error:
        raise _explained(error, wish) from error


def _listener(address: str, port: int) -> socket.socket:
    family, _, _, _, resolved = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    # What a server does: a port that merely lingers after its last connection counts as free.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(resolved)
        listener.listen(1)
    except OSError:
        listener.close()
        raise
    return listener


def _explained(error: OSError, wish: PortWish) -> Exception:
    if error.errno == errno.EADDRINUSE:
        who = listener_on(wish.port)
        return CliError(
            f"Port {wish.port} is taken{f' by {who}' if who else ''}; {wish.part} needs it.",
            f"Stop that program, or set {wish.variable} to another port; 0 picks a free one.",
            ExitCode.REFUSED,
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return _bad_address(wish)
    if error.errno == errno.EACCES:
        return CliError(
            f"This user may not listen on port {wish.port}, which {wish.part} needs.",
            f"Set {wish.variable} to a port above 1023; 0 picks a free one.",
        )
    return error


def _bad_address(wish: PortWish) -> CliError:
    return CliError(
        f"{wish.address} is not an address of this machine, so {wish.part} cannot listen on it.",
        "Set EDGEWRIGHT_BIND to one of its addresses, to 0.0.0.0 for all, or unset it for this machine only.",
        ExitCode.USAGE,
    )


def hidden_address() -> tuple[str, int]:
    """A free address and port on this machine where no page in a browser gets to, though its programs do.

    A random address of 127.0.0.0/8 where the system has all of them.

    Raises:
        CliError: none is free.
    """
    for _ in range(_TRIES):
        address = f"127.{random.randint(16, 254)}.{random.randint(1, 254)}.{random.randint(1, 254)}"  # noqa: S311 - no secret
        port = random.choice(BLOCKED)  # noqa: S311 - the same
        try:
            _bind_briefly(address, port)
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL:
                break  # this system has 127.0.0.1 only
            continue
        return address, port
    for port in random.sample(BLOCKED, k=len(BLOCKED)):
        try:
            _bind_briefly("127.0.0.1", port)
        except OSError:
            continue
        return "127.0.0.1", port
    raise CliError(
        "None of the ports that browsers do not open is free, and Temporal's Web UI has to hide behind one.",
        f"Free one of 127.0.0.1's {', '.join(map(str, BLOCKED))}.",
        ExitCode.REFUSED,
    )


def _bind_briefly(address: str, port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
