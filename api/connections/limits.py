"""What one connection, one address, and all connections together may take of a gateway."""

import sys
from contextlib import suppress
from dataclasses import dataclass

from api.connections.phases import ConnectionPhase

if sys.platform != "win32":
    import resource

RESERVED_DESCRIPTORS = 128
"""For the database, the programs of git, logs and listening sockets."""
MOST_CONNECTIONS = 16_384
"""However many descriptors there are: each connection takes memory, too."""

LINGERING_SECONDS = 2.0
"""For what a client still sends after it was refused."""

MOST_OF_A_TOKEN = 128
MOST_OF_AN_ADDRESS = 512
"""Unless a setting says otherwise; fewer where there are few descriptors."""


@dataclass(frozen=True)
class ConnectionLimits:
    """The bounds of one listening port. Seconds are measured with the event loop's clock.

    Args:
        overall: connections at once. Callers not identified yet take at most a quarter, operators at most a half.
        per_address: connections at once from one address, except those that have authenticated.
        per_cluster: connections at once that have authenticated as one cluster.
        head_bytes: of a request's line and headers together.
        head_lines: headers of one request.
        handshake_seconds: for the TLS handshake.
        head_seconds: from a connection's start, or from a request's first byte, until all headers have arrived.
        body_seconds: in which at least ``BODY_PROGRESS_BYTES`` of an unfinished body arrive.
        answer_seconds: in which a client takes at least some bytes of an answer that waits for it.
        idle_seconds: between two requests.
        trusted_proxies: addresses and networks whose ``X-Forwarded-For`` counts.
    """

    overall: int = 896
    per_address: int = 112
    per_cluster: int = 32
    head_bytes: int = 64 * 1024
    head_lines: int = 128
    handshake_seconds: float = 15.0
    head_seconds: float = 20.0
    body_seconds: float = 60.0
    answer_seconds: float = 120.0
    idle_seconds: float = 75.0
    trusted_proxies: tuple[str, ...] = ()

    @property
    def newcomers(self) -> int:
        """How many connections may be open whose caller is not identified."""
        return max(1, self.overall // 4)

    @property
    def operators(self) -> int:
        """How many connections operators may have together; what is left belongs to edges."""
        return max(1, self.overall // 2)

    @property
    def waiting_edges(self) -> int:
        """How many edges may wait for an answer; the rest is left to who calls meanwhile, Flux among them."""
        return max(1, self.overall * 5 // 8)

    @property
    def per_token(self) -> int:
        """How many connections one operator token may have, its sessions among them."""
        return max(1, min(MOST_OF_A_TOKEN, self.operators // 4))

    def seconds_of(self, phase: ConnectionPhase) -> float:
        """How long a connection may be in a phase, or make no progress in it."""
        match phase:
            case ConnectionPhase.HANDSHAKE:
                return self.handshake_seconds
            case ConnectionPhase.FRESH | ConnectionPhase.HEAD:
                return self.head_seconds
            case ConnectionPhase.IDLE:
                return self.idle_seconds
            case ConnectionPhase.BODY:
                return self.body_seconds
            case ConnectionPhase.ANSWERING:
                return self.answer_seconds
            case ConnectionPhase.DRAINING | ConnectionPhase.LINGERING:
                return LINGERING_SECONDS

    @property
    def watch_seconds(self) -> float:
        """How often each connection is looked at: a deadline is overrun by no more than this."""
        return min(self.handshake_seconds, self.head_seconds, self.body_seconds, self.answer_seconds) / 4


def raise_descriptor_limit() -> None:
    """Raises this process's soft limit of open files to the hard one."""
    if sys.platform != "win32":
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        with suppress(ValueError, OSError):  # macOS has a hard limit that it does not grant
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def descriptor_limit() -> int | None:
    """How many files this process may open; None: any number."""
    if sys.platform == "win32":
        return None
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def limits_for(
    descriptors: int | None,
    *,
    overall: int | None = None,
    per_address: int | None = None,
    trusted_proxies: tuple[str, ...] = (),
) -> ConnectionLimits:
    """The limits of a gateway that may open so many files.

    Args:
        descriptors: None: no limit.
        overall, per_address: what the settings ask for; None: what fits.
    """
    room = overall or MOST_CONNECTIONS
    if descriptors is not None:
        room = min(room, max(8, descriptors - max(RESERVED_DESCRIPTORS, descriptors // 8)))
    fair = max(1, min(MOST_OF_AN_ADDRESS, room // 8))
    return ConnectionLimits(overall=room, per_address=per_address or fair, trusted_proxies=trusted_proxies)
