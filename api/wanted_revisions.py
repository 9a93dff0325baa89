"""What Flux is to fetch on an edge: the heads of the repositories that its sources name."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from uuid import UUID

from api.event_streams import SharedAnswer
from edgewright.domain.delivery import OWN_SOURCE
from edgewright.domain.rendering.repository import DEFAULT_SOURCE
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.errors import NotFound, Stalled, Waiting
from edgewright.ports.git_server import CommitId, GitServer


class WantedRevisions:
    """Reads them. The head counts whoever has committed it: a push as well."""

    def __init__(self, git: GitServer) -> None:
        self._git = git
        self._charts: SharedAnswer[CommitId | None] = SharedAnswer()

    async def of(self, cluster: UUID) -> Mapping[str, CommitId]:
        """By the name of the source; without those that cannot be read now."""
        own, charts = await self._head(cluster), await self.charts()
        return {name: commit for name, commit in ((OWN_SOURCE, own), (DEFAULT_SOURCE, charts)) if commit is not None}

    async def charts(self) -> CommitId | None:
        """Of the charts that all edges read; None: there is none, or it cannot be read now."""
        return await self._charts.of("charts", lambda: self._head(REPOSITORY_HELM_CHARTS))

    async def _head(self, repository: UUID) -> CommitId | None:
        with suppress(NotFound, Waiting, Stalled):
            return await asyncio.to_thread(self._git.head, repository)
        return None
