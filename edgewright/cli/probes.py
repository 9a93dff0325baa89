"""Short questions to a port: does anybody serve there? They carry no secret and no answer is trusted."""

import socket
import ssl
from collections.abc import Callable

import httpx

_SECONDS = 3.0


def answers(url: str) -> bool:
    """Whether a GET of a URL is answered with success within three seconds."""
    try:
        return httpx.get(url, timeout=_SECONDS, trust_env=False, verify=_any_certificate()).is_success
    except (httpx.HTTPError, ssl.SSLError):
        return False


def connects(address: str) -> bool:
    """Whether somebody accepts connections on ``host:port`` within three seconds."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS):
            return True
    except (OSError, ValueError):
        return False


def all_of(*questions: Callable[[], bool]) -> Callable[[], bool]:
    """One question that is answered with yes when all are."""
    return lambda: all(question() for question in questions)


def _any_certificate() -> ssl.SSLContext:
    # Our own child on this machine, by its address: the certificate bears another name. Nothing is verified, so no
    # authorities are read: that takes ten times as long as the question.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
