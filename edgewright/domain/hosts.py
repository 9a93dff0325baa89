"""Checks of host names and addresses."""

import re
from ipaddress import ip_address

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?:{_LABEL}\.)*(?=[^.]*[a-z_]){_LABEL}\.?", re.ASCII | re.IGNORECASE)
LONGEST_NAME = 253


def is_loopback(host: str) -> bool:
    """Whether a host name or address is only reachable from this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_host(host: str) -> bool:
    """Whether a text is an IP address, or a name that can be resolved."""
    try:
        ip_address(host)
    except ValueError:
        return len(host) <= LONGEST_NAME and _NAME.fullmatch(host) is not None
    return True
