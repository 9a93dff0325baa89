"""Which namespaces an edge has, as far as it says."""

from collections.abc import Set as AbstractSet

from edgewright.domain.edge_status import EdgeStatus
from edgewright.domain.kubernetes_names import NAMESPACE_LIMIT


def reported_namespaces(status: EdgeStatus | None) -> AbstractSet[str] | None:
    """The names of all namespaces of an edge; None: it does not say, or not of all of them."""
    if status is None or status.namespaces is None or status.omitted.get("namespaces"):
        return None
    return {name for name in status.namespaces if len(name) <= NAMESPACE_LIMIT}
