"""Tells workflows that what they read has changed, after each committed write.

A nudge is a courtesy: the row is written, and the sweep nudges whatever was missed. So an answer waits for it
only a moment, and Temporal being away fails no request.
"""

import asyncio
from collections.abc import Awaitable, Coroutine, Iterable
from typing import Any
from uuid import UUID

import structlog

from edgewright.application.waking import paced
from edgewright.errors import EdgewrightError
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.fleet import Fleet, FleetUnavailable

PATIENCE_SECONDS = 0.25
"""How long an answer waits for its nudge; the nudge itself goes on."""
MOMENT_SECONDS = 0.25
FAREWELL_SECONDS = 3.0
"""How long a gateway that ends waits for nudges under way."""

_log = structlog.get_logger("edgewright.api")


class Nudges:
    """Nudges under way; they outlive the requests that caused them.

    Args:
        moment: seconds in which nudges that nobody waits for become one.
    """

    def __init__(self, fleet: Fleet, directory: ClusterDirectory, *, moment: float = MOMENT_SECONDS) -> None:
        self._fleet = fleet
        self._directory = directory
        self.moment = moment
        self._under_way: set[asyncio.Task[Any]] = set()
        self._soon: dict[UUID, bool] = {}
        """Clusters to be nudged soon, and whether that was asked for since the last nudge."""
        self._many: dict[UUID, None] = {}
        """Clusters to be nudged when the workers have time, in the order in which that was asked for."""
        self._tells_many = False

    async def nudge(self, cluster: UUID) -> None:
        """Nudges one workflow; returns when that is done, and at the latest after ``PATIENCE_SECONDS``."""
        await self._wait_a_moment(self._nudge(cluster, bulk=False))

    def nudge_soon(self, cluster: UUID) -> None:
        """Nudges one workflow in the background; what is asked for within a moment is one nudge."""
        is_under_way = cluster in self._soon
        self._soon[cluster] = True
        if not is_under_way:
            self._start(self._nudge_soon(cluster))

    async def deliver_notifications(self) -> None:
        """Has what waits for the webhook tried now; returns as ``nudge`` does."""
        told = self._told(self._fleet.deliver_notifications(news=True), workflow="notifications")
        await self._wait_a_moment(told)

    def nudge_many(self, clusters: Iterable[UUID]) -> None:
        """Nudges many workflows on the bulk queue, in the background, no faster than the workers keep up."""
        self._many |= dict.fromkeys(clusters)
        if self._many and not self._tells_many:
            self._tells_many = True
            self._start(self._nudge_all())

    @property
    def under_way(self) -> int:
        """How many are not done yet."""
        return len(self._under_way)

    async def drain(self) -> None:
        """Waits a little for what is under way, then lets it go: the sweep takes over."""
        if self._under_way:
            _, late = await asyncio.wait(self._under_way, timeout=FAREWELL_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _wait_a_moment(self, work: Coroutine[Any, Any, Any]) -> None:
        await asyncio.wait({self._start(work)}, timeout=PATIENCE_SECONDS)

    def _start(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        task = asyncio.create_task(work)
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return task

    async def _nudge_soon(self, cluster: UUID) -> None:
        try:
            while self._soon[cluster]:
                await asyncio.sleep(self.moment)
                self._soon[cluster] = False
                await self._nudge(cluster, bulk=False)
        finally:
            del self._soon[cluster]

    async def _nudge_all(self) -> None:
        try:
            while turn := list(self._many):
                async for portion in paced(self._directory, turn):
                    for cluster in portion:
                        self._many.pop(cluster, None)
                    sent = await asyncio.gather(*(self._nudge(cluster, bulk=True) for cluster in portion))
                    if not any(sent):
                        return  # Temporal is away: each would take its time to find that out
        except EdgewrightError as error:
            _log.warning("nudges not sent, the sweep sends them", left=len(self._many), reason=error.detail)
        finally:
            self._many.clear()
            self._tells_many = False

    async def _nudge(self, cluster: UUID, *, bulk: bool) -> bool:
        return await self._told(self._fleet.nudge(cluster, bulk=bulk), cluster=str(cluster))

    async def _told(self, nudge: Awaitable[None], **whom: str) -> bool:
        """Whether it was sent."""
        try:
            await nudge
        except FleetUnavailable as error:
            _log.info("nudge not sent, the sweep sends it", reason=error.detail, **whom)
            return False
        except EdgewrightError as error:
            _log.warning("nudge failed", code=error.code, reason=error.detail, **whom)
            return False
        return True
