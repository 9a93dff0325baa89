"""Plain HTTP on the loopback address."""

import ssl
from typing import Any

PLAIN: dict[str, Any] = {"trust_env": False, "verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)}
"""Options of httpx: no proxy is asked, and nobody is trusted, as nothing is encrypted. Otherwise httpx reads all
authorities of the machine for each request, which takes ten times as long as the request."""
