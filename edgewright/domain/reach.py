"""Where edges reach the centre, and where the centre wants them to."""

import hashlib
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Reach:
    """Where an edge reaches the centre, as its agent reports it.

    Args:
        url: base URL, without a trailing slash.
        ca_sha256: SHA-256 of the PEM that it uses to trust the centre, hexadecimal; None: it trusts what its machine
            trusts.
        problem: why it has not moved to the URL that it was told; None: it was told none, or does not report it.
        holds_former: it keeps the previous URL, in case this one stops answering.
    """

    url: str
    ca_sha256: str | None = None
    problem: str | None = None
    holds_former: bool = False


@dataclass(frozen=True)
class Door:
    """Where edges should reach the centre.

    Args:
        url: base URL, without a trailing slash.
        ca_bundle: PEM that verifies its certificate; None: their machines' own certificates verify it.
        is_settled: agents may forget the previous URL.
    """

    url: str
    ca_bundle: str | None = None
    is_settled: bool = True

    @cached_property
    def ca_sha256(self) -> str | None:
        """The digest in the form that ``Reach`` has."""
        return None if self.ca_bundle is None else ca_digest(self.ca_bundle)

    def is_used(self, reach: Reach) -> bool:
        """Whether the edge uses this URL."""
        return (reach.url, reach.ca_sha256) == (self.url, self.ca_sha256)


def ca_digest(pem: str) -> str:
    """Returns the SHA-256 of a bundle without surrounding white space, hexadecimal."""
    return hashlib.sha256(pem.strip().encode()).hexdigest()
