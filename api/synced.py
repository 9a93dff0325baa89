"""What *Synced* claims of one cluster, held against what is there at this moment.

Its workflow compares when it is told of a change. Until then, or while Temporal is away, a commit that the edge does
not have, or a configuration that is in no commit, would go unseen.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from api.wanted_revisions import WantedRevisions
from edgewright.application.rendering import RenderInputs, Source, digest_of
from edgewright.domain.cluster import ConditionStatus, ConditionType, Desired
from edgewright.domain.conditions import UNRENDERED, applied_so_far
from edgewright.domain.wellknown import APP_CLUSTER_CONFIGURATION
from edgewright.errors import Stalled, Waiting
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.config_store import ConfigStore


@dataclass(frozen=True)
class Lack:
    """Why *Synced* does not hold any more: a sentence, and since when."""

    message: str
    since: datetime


class SyncedNow:
    """Of one gateway.

    Args:
        external_url: under which edges reach the gateway; no trailing slash.
    """

    def __init__(self, wanted_revisions: WantedRevisions, config: ConfigStore, external_url: str) -> None:
        self._wanted_revisions = wanted_revisions
        self._config = config
        self._render_inputs = RenderInputs(config, external_url)

    async def lack(self, row: ClusterRow) -> Lack | None:
        """None: it holds, its workflow does not claim it, or nothing more can be read now."""
        if row.projection is None or row.projection.status_of(ConditionType.SYNCED) is not ConditionStatus.TRUE:
            return None
        return await self._not_rendered(row) or await self._not_applied(row)

    async def _not_rendered(self, row: ClusterRow) -> Lack | None:
        rendered = row.projection.done.rendered_digest if row.projection else None
        if rendered is None or row.desired is not Desired.PRESENT:
            return None
        try:
            collected = await self._render_inputs.collect(row)
            if await digest_of(collected) == rendered:
                return None
        except Waiting:
            return None
        except Stalled as problem:  # what cannot be rendered is in no commit
            return Lack(f"{UNRENDERED} {problem.detail}", datetime.now(UTC))
        return Lack(UNRENDERED, await self._changed(((APP_CLUSTER_CONFIGURATION, row.uuid), *collected.sources)))

    async def _changed(self, places: tuple[Source, ...]) -> datetime:
        """When one of these entries was written last."""
        found = await self._config.get_each(places)
        return max((each.modified_at for each in found if each is not None), default=datetime.now(UTC))

    async def _not_applied(self, row: ClusterRow) -> Lack | None:
        applied = row.observed_revision
        missed = None if applied is None else await self._wanted_revisions.missed(row.uuid, applied)
        if missed is None:
            return None
        committed = min(datetime.fromtimestamp(missed.at, UTC), datetime.now(UTC))  # a push says any time
        return Lack(applied_so_far(applied, missed.commit), committed)
