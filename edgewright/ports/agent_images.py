"""Where a gateway finds the agent's image that it serves to edges."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

REPOSITORY = "edgewright/agent"
"""What the one repository of the gateway's registry is called."""


@dataclass(frozen=True, slots=True)
class PublishedImage:
    """The image that edges get.

    Args:
        version: of Edgewright, the same for every platform.
        digest: of the index that names the image of each platform, ``sha256:…``.
        platforms: such as ``linux/amd64``.
    """

    version: str
    digest: str
    platforms: tuple[str, ...]

    @property
    def tag(self) -> str:
        """Names this content and no other: the version, and a part of the digest."""
        return f"{self.version}-{self.digest.removeprefix('sha256:')[:12]}"

    def reference(self, registry: str) -> str:
        """What nodes pull.

        Args:
            registry: ``host[:port]``.
        """
        return f"{registry}/{REPOSITORY}:{self.tag}"


@dataclass(frozen=True, slots=True)
class StoredManifest:
    """A manifest or index, byte for byte as its digest is of it."""

    content: bytes
    media_type: str
    digest: str


class AgentImages(Protocol):
    """The image, and what it is made of. What is asked of it is small, but for the blobs, which are files."""

    def published(self) -> PublishedImage | None:
        """The image, or None if none has been built."""

    def tags(self) -> Sequence[str]:
        """The tags of that image and of those before it that edges may run, the newest first."""

    def manifest(self, reference: str) -> StoredManifest | None:
        """What a tag or a digest names; None if it names no manifest of the image."""

    def blob(self, digest: str) -> Path | None:
        """The file of a configuration or a layer, or None if the image has none with that digest."""
