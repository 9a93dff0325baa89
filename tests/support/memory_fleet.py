"""A ``Fleet`` without Temporal, for tests of everything that stands in front of it."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

from edgewright.domain.cluster import StepName
from edgewright.domain.lifecycle import is_skippable
from edgewright.domain.projection import HELD_UP, Projection, StepRecord
from edgewright.errors import Conflict, NotFound
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.cluster_steps import ClusterSteps
from edgewright.ports.cluster_wishes import ClusterWishes
from edgewright.ports.fleet import FleetUnavailable

CommitRequests = Callable[[UUID, Sequence[UUID]], Awaitable[None]]
"""Deals with the staged requests of a cluster, as the workflow's activity does."""
OnNudge = Callable[[UUID], Awaitable[None]]
"""What a cluster's workflow does when it re-reads its row."""


async def _nothing(_cluster: UUID) -> None:
    return None


@dataclass
class MemoryFleet:
    """Implements the port ``Fleet`` on the rows of clusters.

    Args:
        available: False: every call raises ``FleetUnavailable``, as with Temporal away.
        nudged: every nudge, in order: the cluster and whether it was a bulk one.
        sweep_is_missing: somebody has deleted the schedule of the sweep.
        sweep_paused: somebody has paused it.
        delivering: every call of ``deliver_notifications``, in order: whether there were news.
    """

    wishes: ClusterWishes
    directory: ClusterDirectory
    steps: ClusterSteps
    commit_requests: CommitRequests
    on_nudge: OnNudge = _nothing
    available: bool = True
    nudged: list[tuple[UUID, bool]] = field(default_factory=list)
    delivering: list[bool] = field(default_factory=list)
    sweep_is_missing: bool = False
    sweep_paused: bool = False

    async def nudge(self, cluster: UUID, *, bulk: bool = False) -> None:
        """See the port."""
        self._demand_available()
        self.nudged.append((cluster, bulk))
        await self.on_nudge(cluster)

    async def deliver_notifications(self, *, news: bool) -> None:
        """See the port."""
        self._demand_available()
        self.delivering.append(news)

    async def change_secrets(self, cluster: UUID, requests: Sequence[UUID]) -> None:
        """See the port."""
        self._demand_available()
        await self.commit_requests(cluster, requests)

    async def retry_step(self, cluster: UUID, step: StepName, *, actor: str) -> Projection:
        """See the port."""
        return await self._change_step(cluster, step, StepRecord.retry)

    async def skip_step(self, cluster: UUID, step: StepName, *, reason: str, actor: str) -> Projection:
        """See the port."""
        self._demand_available()
        if not is_skippable(step):
            raise Conflict(f"The step {step} cannot be skipped.", code="step_not_skippable")
        return await self._change_step(cluster, step, lambda record: record.skip(datetime.now(UTC), because=reason))

    async def pause(self, cluster: UUID, *, reason: str, actor: str, seen: int | None = None) -> Projection:
        """See the port."""
        projection = await self._projection(cluster)
        with suppress(Conflict):
            await self.wishes.set_paused(cluster, paused=True, reason=reason, actor=actor, seen=seen)
        return projection

    async def resume(self, cluster: UUID, *, actor: str, seen: int | None = None) -> Projection:
        """See the port."""
        projection = await self._projection(cluster)
        with suppress(Conflict):
            await self.wishes.set_paused(cluster, paused=False, reason="", actor=actor, seen=seen)
        return projection

    async def readiness(self, cluster: UUID) -> Projection:
        """See the port."""
        return await self._projection(cluster)

    async def running(self) -> set[UUID]:
        """See the port."""
        self._demand_available()
        return {cluster for cluster, _ in self.nudged} & set(await self.directory.open_clusters())

    async def stands_still(self, cluster: UUID) -> bool:
        """See the port: nothing is tried here, so nothing fails."""
        self._demand_available()
        return False

    async def begin_anew(self, cluster: UUID) -> None:
        """See the port."""
        await self.nudge(cluster, bulk=True)

    async def healthy(self) -> bool:
        """See the port."""
        return self.available

    async def restore_sweep(self, every: timedelta) -> bool:
        """See the port."""
        self._demand_available()
        missing, self.sweep_is_missing = self.sweep_is_missing, False
        return missing

    async def forget_sweeps(self) -> int:
        """See the port: nothing is listed here."""
        self._demand_available()
        return 0

    async def sweep_is_paused(self) -> bool:
        """See the port."""
        self._demand_available()
        return self.sweep_paused

    def _demand_available(self) -> None:
        if not self.available:
            raise FleetUnavailable("Temporal does not answer.")

    async def _projection(self, cluster: UUID) -> Projection:
        self._demand_available()
        row = await self.directory.get(cluster)
        if row is None or row.projection is None:
            raise NotFound("The cluster has no running workflow.", code="workflow_unknown")
        return row.projection

    async def _change_step(
        self, cluster: UUID, name: StepName, change: Callable[[StepRecord], StepRecord]
    ) -> Projection:
        projection = await self._projection(cluster)
        if not any(step.name is name and step.state in HELD_UP for step in projection.steps):
            raise Conflict(f"The step {name} does not wait.", code="step_not_waiting")
        changed = projection.model_copy(
            update={
                "sequence": projection.sequence + 1,
                "steps": tuple(change(step) if step.name is name else step for step in projection.steps),
            }
        )
        await self.steps.project(cluster, changed, [])
        return changed
