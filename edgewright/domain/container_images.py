"""Names of container images: which ones are usable, and their names in a mirror."""

import re

_HOST = r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252}[A-Za-z0-9])?(?::[0-9]{1,5})?"
_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_PATH = rf"{_COMPONENT}(?:/{_COMPONENT})*"
_TAG = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}"
_DIGEST = r"sha256:[0-9a-f]{64}"
IMAGE = re.compile(rf"(?:{_HOST}/)?{_PATH}(?::(?P<tag>{_TAG}))?(?:@(?P<digest>{_DIGEST}))?")
"""As in the grammar of the distribution specification, with nothing but SHA-256 for a digest."""
MIRROR = re.compile(rf"{_HOST}(?:/{_PATH})?")
_LONGEST = 512


def is_pinned(image: str) -> bool:
    """Whether the text names one image, with a tag other than ``latest`` or with a digest."""
    found = IMAGE.fullmatch(image) if len(image) <= _LONGEST else None
    return found is not None and (found["digest"] is not None or found["tag"] not in {None, "latest"})


def repository_of(image: str) -> str:
    """Where an image comes from: its name without tag and digest."""
    name = image.partition("@")[0]
    repository, colon, tag = name.rpartition(":")
    return repository if colon and "/" not in tag else name


def is_mirror(text: str) -> bool:
    """Whether the text is ``host[:port][/folder]``, without a scheme and without a slash at its end."""
    return len(text) <= _LONGEST and MIRROR.fullmatch(text) is not None


def mirrored(image: str, mirror: str) -> str:
    """Returns the name of an image in a mirror: the mirror replaces the registry, and the rest stays.

    ``ghcr.io/fluxcd/source-controller:v1.7.0`` becomes ``MIRROR/fluxcd/source-controller:v1.7.0``.
    """
    first, slash, rest = image.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return f"{mirror}/{rest}"
    return f"{mirror}/{image}" if slash else f"{mirror}/library/{image}"
