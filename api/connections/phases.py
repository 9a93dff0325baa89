"""What a connection is at."""

from enum import Enum, auto


class RequestPart(Enum):
    """Which part of a request is being read."""

    NOTHING = auto()
    HEAD = auto()
    BODY = auto()


class ConnectionPhase(Enum):
    """What a connection is at; each has its deadline."""

    HANDSHAKE = auto()
    FRESH = auto()
    IDLE = auto()
    HEAD = auto()
    BODY = auto()
    ANSWERING = auto()
    DRAINING = auto()
    """The answer is complete, the request's body is not."""
    LINGERING = auto()
    """Refused; nothing is parsed any more."""
