"""What *Synced* claims of one cluster, held against what is there at this moment.

Its workflow compares when it is told of a change. Until then, or while Temporal is away, a commit that the edge does
not have, or a configuration that is in no commit, would go unseen.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from api.wanted_revisions import WantedRevisions
from edgewright.application.own_components import FLUX_RELEASE_MISSING
from edgewright.application.rendering import TEMPLATE_MISSING, RenderInputs, digest_of
from edgewright.domain.cluster import Condition, ConditionStatus, ConditionType, Desired
from edgewright.domain.conditions import UNRENDERED, applied_so_far
from edgewright.domain.templates import TemplateError
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
    """Checks claims of *Synced* for one gateway.

    Args:
        external_url: under which edges reach the gateway; no trailing slash.
    """

    def __init__(self, wanted_revisions: WantedRevisions, config: ConfigStore, external_url: str) -> None:
        self._wanted_revisions = wanted_revisions
        self._config = config
        self._external_url = external_url
        self._render_inputs = RenderInputs(config, external_url)

    async def lack(self, row: ClusterRow) -> Lack | None:
        """None: it holds, its workflow does not claim it, or nothing more can be read now."""
        stated = row.projection.condition(ConditionType.SYNCED) if row.projection else None
        if stated is None or stated.status is not ConditionStatus.TRUE:
            return None
        unrendered = await self._not_rendered(row, stated) if row.desired is Desired.PRESENT else None
        return unrendered or await self._not_applied(row, stated)

    async def _not_rendered(self, row: ClusterRow, stated: Condition) -> Lack | None:
        looked = max(row.projected_at or stated.since, stated.since)
        if row.rendered_digest is None:
            return Lack(UNRENDERED, looked)
        try:
            collected = await self._render_inputs.collect(row)
            if (
                not self._renders_alike(row, collected.external_url)
                or await digest_of(collected) == row.rendered_digest
            ):
                return None
            entry = await self._config.get(APP_CLUSTER_CONFIGURATION, row.uuid)
        except Waiting:
            return None
        except Stalled as problem:
            if isinstance(problem, TemplateError) or problem.code in {TEMPLATE_MISSING, FLUX_RELEASE_MISSING}:
                return Lack(f"{UNRENDERED} {problem.detail}", looked)
            return None
        changed = max(collected.changed_at, entry.modified_at if entry else collected.changed_at)
        return Lack(UNRENDERED, changed if changed > stated.since else looked)

    def _renders_alike(self, row: ClusterRow, rendered_with: str | None) -> bool:
        """Whether whoever renders knows the centre by the same URL. Where it was told another one, it decides."""
        return row.proven_url is not None or rendered_with in (None, self._external_url)

    async def _not_applied(self, row: ClusterRow, stated: Condition) -> Lack | None:
        applied = row.observed_revision
        missed = None if applied is None else await self._wanted_revisions.missed(row.uuid, applied)
        if missed is None:
            return None
        committed = min(datetime.fromtimestamp(missed.at, UTC), datetime.now(UTC))  # a push says any time
        return Lack(applied_so_far(applied, missed.commit), max(committed, stated.since))
