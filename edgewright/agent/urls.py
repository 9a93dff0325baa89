"""Which URLs the agent can call, and as whom; one that it cannot call would end it at its first call."""

import ssl

import httpx2

from edgewright import __version__

USER_AGENT = f"edgewright-agent/{__version__}"
"""What the logs of those that it calls show."""


def is_base_url(text: str) -> bool:
    """Whether a path can be put behind this. No user name and no password: a URL is logged."""
    try:
        url = httpx2.URL(text)
    except httpx2.InvalidURL:
        return False
    bare = not (url.userinfo or url.query or url.fragment)
    return url.scheme in ("http", "https") and bool(url.host) and bare


def trusted_by(url: str) -> ssl.SSLContext | bool:
    """What httpx2 verifies the server of a URL with: the machine's authorities, or for plain HTTP, where nobody shows
    a certificate, none. Reading all of them takes 20 ms and keeps 1 MB."""
    return True if url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
