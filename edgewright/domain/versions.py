"""Comparison of versions."""

from packaging.version import InvalidVersion, Version


def is_older(version: str | None, than: str | None) -> bool | None:
    """Whether a version is older than another; None: one of them is not a release's version.

    >>> is_older("v2.9.1", "v2.10.0"), is_older("v2.7.0", "v2.7.0-rc.1"), is_older("", "v2.7.0")
    (True, False, None)
    """
    try:
        return Version(version or "") < Version(than or "")
    except InvalidVersion:
        return None
