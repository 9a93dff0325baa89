"""The agent's image that a gateway serves to edges."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

REPOSITORY = "edgewright/agent"
"""Name of the only repository in the gateway's registry."""


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
        """The version and a part of the digest, which identify this content."""
        return f"{self.version}-{self.digest.removeprefix('sha256:')[:12]}"

    def reference(self, registry: str) -> str:
        """Returns the reference that nodes pull.

        Args:
            registry: ``host[:port]``.
        """
        return f"{registry}/{REPOSITORY}:{self.tag}"


@dataclass(frozen=True, slots=True)
class StoredManifest:
    """A manifest or index, with exactly the bytes that its digest covers."""

    content: bytes
    media_type: str
    digest: str


class AgentImages(Protocol):
    """The image and its parts. All answers are small, except blobs, which are files."""

    def published(self) -> PublishedImage | None:
        """Returns the image, or None if none has been built."""

    def tags(self) -> Sequence[str]:
        """Returns the tags of this image and of earlier ones that edges may still run, newest first."""

    def manifest(self, reference: str) -> StoredManifest | None:
        """Finds a manifest by tag or digest; None if the image has no such manifest."""

    def blob(self, digest: str) -> Path | None:
        """Returns the file of a configuration or a layer, or None if the image has none with that digest."""
