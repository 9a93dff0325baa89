"""How clusters are found, shown and listed."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from edgewright.ports.clusters import ClusterFilter, ClusterPage, ClusterRow


class ClusterDirectory(Protocol):
    """Reads clusters; changes nothing."""

    async def get(self, cluster: UUID) -> ClusterRow | None:
        """The row, also of removed and deleted clusters; None for a UUID that was never a cluster."""

    async def find(self, name: str) -> UUID | None:
        """The cluster with that name (whatever the case) whose deletion has not finished, or None."""

    async def name_of(self, cluster: UUID) -> str | None:
        """The name of a cluster, also of a removed or deleted one; None for a UUID that was never a cluster."""

    async def page(self, filter_: ClusterFilter) -> ClusterPage:
        """A page of summaries; ``Invalid`` for a bad ``sort`` or ``after``."""

    async def unfinished(self, *, among: Collection[UUID] | None = None, limit: int = 10_000) -> Sequence[UUID]:
        """Clusters whose row and projection differ: change not done, lease epoch not taken, staged secrets, a
        rendering that is due again, or news since the projection, however old, of the edge or of a commit of secrets.

        Args:
            among: only these, a portion of all; None: all.
        """

    async def underway(self) -> Sequence[UUID]:
        """Clusters whose workflow has published that a step of theirs is not finished, the longest unpublished first.

        Their row and projection need not differ: a workflow that has forgotten the step is found in no other way. Nor
        is a deletion that has finished, and whose workflow was forgotten before it could tell so.
        """

    async def open_clusters(self) -> Sequence[UUID]:
        """All clusters whose deletion has not finished: each has a running workflow."""

    async def using_template(self, app: UUID, object_: UUID) -> Sequence[UUID]:
        """Clusters whose generated files were rendered with an entry, and those that nothing was rendered for yet:
        the entry may be what they are blocked by."""

    async def chart_users(self) -> Mapping[UUID, int]:
        """How many clusters have each Helm chart template; those that nothing was rendered for yet have the one that
        their configuration names. A template that no cluster has is left out."""
