"""Finding, showing and listing clusters."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from edgewright.ports.clusters import ClusterFilter, ClusterPage, ClusterRow


class ClusterDirectory(Protocol):
    """Reads clusters; changes nothing."""

    async def get(self, cluster: UUID) -> ClusterRow | None:
        """Returns the row, even of a removed or deleted cluster; None for a UUID that was never a cluster."""

    async def find(self, name: str) -> UUID | None:
        """Finds the cluster with that name (case-insensitive) whose deletion has not finished, or None."""

    async def name_of(self, cluster: UUID) -> str | None:
        """Returns the name, even of a removed or deleted cluster; None for a UUID that was never a cluster."""

    async def page(self, filter_: ClusterFilter) -> ClusterPage:
        """Returns a page of summaries. Raises ``Invalid`` for a bad ``sort`` or ``after``."""

    async def unfinished(self, *, among: Collection[UUID] | None = None, limit: int = 10_000) -> Sequence[UUID]:
        """Returns clusters whose row and projection differ: an unfinished change, an unread lease epoch, staged
        secrets, a rendering that is due again, or news from the edge or a commit of secrets after the projection.

        Args:
            among: only these clusters; None: all.
        """

    async def underway(self) -> Sequence[UUID]:
        """Returns clusters whose workflow has published an unfinished step, the longest unpublished first.

        Row and projection need not differ: this is the only way to find a workflow that has forgotten the step, or a
        finished deletion whose workflow was lost before it could publish the end.
        """

    async def open_clusters(self) -> Sequence[UUID]:
        """Returns all clusters whose deletion has not finished. Each has a running workflow."""

    async def using_template(self, app: UUID, object_: UUID) -> Sequence[UUID]:
        """Returns clusters whose generated files were rendered from an entry, and clusters without a rendering, which
        may be blocked by that entry."""

    async def chart_users(self) -> Mapping[UUID, int]:
        """Returns how many clusters have each Helm chart template. A cluster without a rendering counts for the one
        that its configuration names. Templates that no cluster has are left out."""
