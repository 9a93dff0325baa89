"""Names of clusters."""

import re

from edgewright.errors import Invalid

CLUSTER_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9])?", re.ASCII)


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


def name_key(name: str) -> str:
    """What two names must not share: names are unique whatever the case."""
    return name.lower()
