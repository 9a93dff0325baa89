"""What an edge lacks, as it is reported: objects that drive it, rights of the agent, answers of Flux,
keys that open its secrets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MOST_NAMED = 20
"""Names of what is missing, unknown, or not opened: where more is, the first ones say enough."""
LONGEST_NAMED = 200
"""Characters of an object that is missing; the centre reads no more."""
NODES, SEALED_SECRETS = "nodes", "sealedsecrets"
SOURCES, KUSTOMIZATIONS, RELEASES = "gitrepositories", "kustomizations", "helmreleases"
"""Resources, as RBAC calls them."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """What the agent may not see, or not change.

    Args:
        what: resource, as RBAC calls it; with the name of one object after a slash.
        right: that it lacks, in words.
    """

    what: str
    right: str

    def to_json(self) -> dict[str, str]:
        """As it is reported."""
        return {"what": self.what, "right": self.right}


@dataclass(frozen=True, slots=True)
class Unopened:
    """A value that no key of the edge opens.

    Args:
        secret: ``namespace/name``.
        sha256: of its ciphertext, base64 as it stands in the file; hexadecimal.
    """

    secret: str
    key: str
    sha256: str

    def to_json(self) -> dict[str, str]:
        """As it is reported."""
        return {"secret": self.secret, "key": self.key, "sha256": self.sha256}


def lacks_json(
    missing: Sequence[str], unknown: Sequence[Unknown], silent: Sequence[str], unopened: Sequence[Unopened] | None
) -> dict[str, Any]:
    """The part of the *Edge cluster status*; an edge that lacks nothing says no more than that everything opens.

    Args:
        silent: Flux's controllers that leave undone what is due.
        unopened: None: not tried yet.
    """
    said: dict[str, Any] = {}
    if missing:
        said["missing"] = [each[:LONGEST_NAMED] for each in missing[:MOST_NAMED]]
    if unknown:
        said["unknown"] = [each.to_json() for each in unknown[:MOST_NAMED]]
    if silent:
        said["silent"] = list(silent)
    if unopened is not None:
        said["unopened"] = [each.to_json() for each in unopened[:MOST_NAMED]]
    if unopened is not None and len(unopened) > MOST_NAMED:
        said["unopened_count"] = len(unopened)
    return said
