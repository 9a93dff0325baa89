"""What is said of a cluster whose deletion has finished: not what a typing error gets."""

from datetime import datetime
from uuid import UUID

from edgewright.errors import Gone


def cluster_deleted(cluster: UUID, name: str, ended_at: datetime) -> Gone:
    """The refusal of everything but reading the timeline."""
    return Gone(
        f"The cluster {name} was deleted at {ended_at:%Y-%m-%dT%H:%M:%SZ}.",
        code="cluster_deleted",
        hint=f"`edgewright cluster timeline {cluster}` shows what happened. The UUID is never used again.",
        ended_at=ended_at.isoformat().replace("+00:00", "Z"),
        timeline=f"/v1/cluster/{cluster}/timeline",
    )
