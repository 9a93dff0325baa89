"""What Flux is to fetch on an edge: the heads of the repositories that its sources name.

Heartbeats must not wait for a disk. Heads are read in threads of their own, an answer that waits for one longer than
a second goes without, and while too many reads have not come back, none is begun.
"""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from uuid import UUID

from api.event_streams import SharedAnswer
from edgewright.domain.delivery import OWN_SOURCE
from edgewright.domain.rendering.repository import DEFAULT_SOURCE
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.errors import NotFound, Stalled, Waiting
from edgewright.ports.git_server import CommitId, CommitSummary, GitServer

PATIENCE_SECONDS = 1.0
THREADS = 4
MOST_UNDER_WAY = 256
"""Reads; a read takes less than a millisecond."""

T = TypeVar("T")


class WantedRevisions:
    """Reads them. The head counts whoever has committed it: a push as well.

    Args:
        patience: seconds that an answer waits for a read.
    """

    def __init__(self, git: GitServer, *, patience: float = PATIENCE_SECONDS) -> None:
        self._git = git
        self._patience = patience
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="heads")
        self._under_way = 0
        self._charts: SharedAnswer[CommitId | None] = SharedAnswer()

    async def of(self, cluster: UUID) -> Mapping[str, CommitId]:
        """By the name of the source; without those that cannot be read now."""
        own, charts = await self._head(cluster), await self.charts()
        return {name: commit for name, commit in ((OWN_SOURCE, own), (DEFAULT_SOURCE, charts)) if commit is not None}

    async def charts(self) -> CommitId | None:
        """The newest commit of the charts that all edges read; None: there is none, or it cannot be read now."""
        return await self._charts.of("charts", lambda: self._head(REPOSITORY_HELM_CHARTS))

    async def missed(self, cluster: UUID, applied: CommitId) -> CommitSummary | None:
        """The newest commit, if what an edge has applied does not hold it; None also where that cannot be read."""
        head = await self._head(cluster)
        if head is None or head == applied:
            return None
        return await self._read(lambda: self._newest_without(cluster, applied))

    def _newest_without(self, cluster: UUID, applied: CommitId) -> CommitSummary | None:
        newest = next(iter(self._git.log(cluster, limit=1)), None)  # it may have been put back since
        return None if newest is None or self._git.is_ancestor(cluster, newest.commit, applied) else newest

    async def _head(self, repository: UUID) -> CommitId | None:
        return await self._read(lambda: self._git.head(repository))

    async def _read(self, read: Callable[[], T | None]) -> T | None:
        if self._under_way >= MOST_UNDER_WAY:
            return None
        self._under_way += 1
        reading = asyncio.get_running_loop().run_in_executor(self._threads, read)
        reading.add_done_callback(self._ended)
        try:
            return await asyncio.wait_for(asyncio.shield(reading), self._patience)
        except (TimeoutError, NotFound, Waiting, Stalled):
            return None

    def _ended(self, reading: "asyncio.Future[T | None]") -> None:
        self._under_way -= 1
        if not reading.cancelled():
            reading.exception()  # nobody else may be left to take note of it
