"""Which namespaces an edge has, as far as it says."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from edgewright.domain.kubernetes_names import NAMESPACE_LIMIT

MOST_REPORTED = 250


def reported_namespaces(status: Mapping[str, Any] | None) -> AbstractSet[str] | None:
    """The names of all namespaces of an edge; None: it does not say, or not of all of them.

    Args:
        status: an *Edge cluster status*, as an edge sent it: nothing in it is trusted to have any shape.
    """
    said, omitted = (status or {}).get("namespaces"), (status or {}).get("omitted")
    if not isinstance(said, list) or len(said) > MOST_REPORTED:
        return None
    if isinstance(omitted, Mapping) and omitted.get("namespaces"):
        return None
    return {name for name in said if isinstance(name, str) and len(name) <= NAMESPACE_LIMIT}
