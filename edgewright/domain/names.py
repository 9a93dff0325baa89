"""Names of clusters and of shared repositories."""

import re
from uuid import UUID

from edgewright.errors import Invalid

CLUSTER_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?", re.ASCII)
REPOSITORY_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_UUID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)


def check_cluster_name(name: str) -> str:
    """Returns the name if it may be the name of a cluster.

    Raises:
        Invalid: code ``name_invalid``.
    """
    if CLUSTER_NAME.fullmatch(name) is None:
        raise Invalid(
            "The name of a cluster is 1 to 63 letters, digits, '-' or '_'; its ends are letters or digits.",
            code="name_invalid",
            hint="Choose a name such as press-shop.",
            where="name",
        )
    return name


def check_new_cluster_name(name: str) -> None:
    """Refuses names that look like a UUID. Existing clusters with such names keep them.

    Raises:
        Invalid: code ``name_invalid``.
    """
    if spelled_uuid(name) is not None:
        raise Invalid(
            "The name of a cluster cannot have the form of a UUID: a request could not tell which one it means.",
            code="name_invalid",
            hint="Choose a name such as press-shop.",
            where="name",
        )


def check_repository_name(name: str, *, where: str | None = None) -> str:
    """Returns the name if it may be the name of a shared repository.

    Raises:
        Invalid: code ``name_invalid``.
    """
    if REPOSITORY_NAME.fullmatch(name) is None:
        raise Invalid(
            "A shared repository is called shared/NAME.",
            code="name_invalid",
            hint="NAME has at most 63 lower-case letters, digits and hyphens, and begins and ends with no hyphen.",
            where=where,
        )
    return name


def spelled_uuid(text: str) -> UUID | None:
    """Parses a UUID, with or without hyphens; None for any other text.

    >>> spelled_uuid("press-shop"), str(spelled_uuid("05194035-8EE5-56F1-95FA-86BCA267C5C1"))
    (None, '05194035-8ee5-56f1-95fa-86bca267c5c1')
    """
    return UUID(text) if _UUID.fullmatch(text) else None


def name_key(name: str) -> str:
    """Returns the key by which names are unique: they are case-insensitive."""
    return name.lower()
