"""Where edges reach the centre, and where the centre wants them to."""

import hashlib
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Reach:
    """Where an edge reaches the centre, as its agent says.

    Args:
        url: base URL, without a slash at its end.
        ca_sha256: of the PEM that it trusts the centre by, hexadecimal; None: it trusts what its machine does.
        problem: why it has not moved to where it was told to; None: it was not told, or does not say.
        holds_former: it keeps the one before, in case that this one does not answer any more.
    """

    url: str
    ca_sha256: str | None = None
    problem: str | None = None
    holds_former: bool = False


@dataclass(frozen=True)
class Door:
    """Where edges are to reach the centre.

    Args:
        url: base URL, without a slash at its end.
        ca_bundle: PEM that signs its certificate; None: what their machines trust does.
        is_settled: what was there before may be forgotten.
    """

    url: str
    ca_bundle: str | None = None
    is_settled: bool = True

    @cached_property
    def ca_sha256(self) -> str | None:
        """As ``Reach`` has it."""
        return None if self.ca_bundle is None else ca_digest(self.ca_bundle)

    def is_used(self, reach: Reach) -> bool:
        """Whether that edge is there."""
        return (reach.url, reach.ca_sha256) == (self.url, self.ca_sha256)


def ca_digest(pem: str) -> str:
    """SHA-256, hexadecimal, of a bundle, whatever white space is around it."""
    return hashlib.sha256(pem.strip().encode()).hexdigest()
