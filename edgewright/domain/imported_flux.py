"""The Flux bundle as the Config Store keeps it."""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from uuid import UUID, uuid5

from pydantic import BaseModel, ConfigDict

from edgewright.domain.flux_bundle import FluxBundle, read_flux_bundle
from edgewright.domain.own_objects import ObjectKey
from edgewright.domain.rendering.manifests import manifest_key
from edgewright.domain.wellknown import APP_FLUX_BUNDLE
from edgewright.errors import Invalid, NotFound


class ImportedFlux(BaseModel):
    """Body of the entry *Flux bundle*; it only ever grows.

    Args:
        sha256: of the file, 64 hexadecimal digits.
        version: of Flux, such as ``v2.7.0``; empty if its objects are not labelled.
        namespace: the one that its controllers live in.
        images: as the file names them.
        manifests: the file.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    sha256: str
    version: str
    namespace: str
    images: tuple[str, ...]
    manifests: str

    @property
    def named(self) -> str:
        """How people are told of it."""
        return self.version or f"of SHA-256 {self.sha256[:12]}"

    def for_script(self, *, mirror: str | None) -> bytes:
        """What the bootstrap script applies: without the Namespace. Takes a second of computing the first time."""
        return _for_script(self.manifests, mirror)

    def objects(self) -> tuple[ObjectKey, ...]:
        """What it brings. Takes a second of computing the first time."""
        return tuple(ObjectKey(*manifest_key(one)) for one in _read(self.manifests).manifests)

    def labelled(self, labels: Mapping[str, str], *, mirror: str | None) -> bytes:
        """All of it, each object with more labels. Takes a second of computing."""
        return _read(self.manifests).rendered(mirror=mirror, labels=labels)


def release_object(sha256: str) -> UUID:
    """The object of which a kept release is an entry, by the checksum of its file."""
    return uuid5(APP_FLUX_BUNDLE, sha256)


def release_unknown(version: str) -> NotFound:
    """The centre does not have that release, or not any more."""
    return NotFound(
        f"This centre has not imported Flux {version}.",
        code="flux_release_unknown",
        hint="`edgewright flux list` shows what it has; `edgewright flux import VERSION` adds one.",
    )


def checked_import(content: bytes, sha256: str) -> ImportedFlux:
    """The bundle in a file, if the file is the one that is meant. Takes seconds of computing.

    Args:
        sha256: what somebody knows of the file from elsewhere, 64 hexadecimal digits.

    Raises:
        Invalid: code ``checksum_differs``; or as ``read_flux_bundle``.
    """
    found = hashlib.sha256(content).hexdigest()
    if found != sha256.lower():
        raise Invalid(
            f"The file has the SHA-256 {found}, and not the one that was given.",
            code="checksum_differs",
            hint="Fetch the file again, and compare with the checksum that its release states.",
            where="sha256",
        )
    bundle = read_flux_bundle(content)
    return ImportedFlux(
        sha256=found,
        version=bundle.version,
        namespace=bundle.namespace,
        images=bundle.images,
        manifests=content.decode(),
    )


@lru_cache(maxsize=1)
def _read(manifests: str) -> FluxBundle:
    return read_flux_bundle(manifests.encode())


@lru_cache(maxsize=1)
def _for_script(manifests: str, mirror: str | None) -> bytes:
    return _read(manifests).rendered(mirror=mirror, namespace_too=False)
