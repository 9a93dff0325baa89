"""What a path of a cluster's life is walked with: a centre of its own, and adapters that fail when they should."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from centre import WorkflowCentre, eventually, open_centre, working
from cluster_states import at_phase, is_told, stage

from edgewright.application.secret_commits import SecretCommits
from edgewright.domain.cluster import (
    ClusterSettings,
    ConditionStatus,
    ConditionType,
    Phase,
    StepState,
)
from edgewright.errors import Waiting
from edgewright.ports.clusters import ClusterRow

ACTOR = "token:ann"


@dataclass
class LeadingClock:
    """The database's clock, some time ahead of everybody else's."""

    ahead: timedelta = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@dataclass
class Walk:
    """One path under way: a centre of its own, on a server that others use after it."""

    centre: WorkflowCentre
    clock: LeadingClock
    name: str

    def working(self, **replaced: Any) -> Any:
        return working(self.centre, **replaced)

    async def told(self, cluster: UUID) -> None:
        """Waits until the workflow rests."""
        await eventually(lambda: is_told(self.centre, cluster))

    async def create(self, settings: ClusterSettings | None = None) -> UUID:
        """A cluster that is ready and rests."""
        cluster = await self.begin(settings)
        await self.until(cluster, lambda row: bool(row.projection and row.projection.ready))
        await self.told(cluster)
        return cluster

    async def begin(self, settings: ClusterSettings | None = None) -> UUID:
        """A cluster that has been asked for."""
        cluster = uuid4()
        body = {"name": self.name, "namespace": "edgewright"}
        await self.centre.wishes.write_configuration(
            cluster, body, actor=ACTOR, settings=settings, create_object=True
        )
        await self.nudge(cluster)
        return cluster

    async def nudge(self, cluster: UUID) -> None:
        await self.centre.fleet.nudge(cluster)

    async def until(self, cluster: UUID, holds: Callable[[ClusterRow], bool]) -> ClusterRow:
        return await self.centre.until(cluster, holds)

    async def active(self) -> UUID:
        """A cluster that an edge has joined."""
        cluster = await self.create()
        await self.centre.bootstrap(cluster)
        await self.until(cluster, at_phase(Phase.ACTIVE))
        await self.told(cluster)
        return cluster

    async def delete(self, cluster: UUID, **how: Any) -> None:
        await self.centre.wishes.request_deletion(cluster, actor=ACTOR, **how)
        await self.nudge(cluster)

    async def gone(self, cluster: UUID) -> None:
        """Waits until the workflow has ended."""

        async def ended() -> bool:
            status = (await self.centre.handle(cluster).describe()).status
            return status is not None and status.name == "COMPLETED"

        await eventually(ended)


Way = Callable[[Walk], Awaitable[UUID | str]]
"""Walks a path; returns the cluster, or the ID of another workflow, whose history it is."""
PATHS: dict[str, Way] = {}
SHORT_RUNS: set[str] = set()
"""Paths that want a server which suggests to continue as new after few events."""


def path(walk: Way) -> Way:
    PATHS[walk.__name__] = walk
    return walk


def through_several_runs(walk: Way) -> Way:
    SHORT_RUNS.add(walk.__name__)
    return path(walk)


@asynccontextmanager
async def setting_out(name: str, folder: Path, temporal: str) -> AsyncIterator[Walk]:
    """A fresh centre for one path."""
    clock = LeadingClock()
    async with open_centre(folder, temporal, clock=clock) as centre:
        yield Walk(centre, clock, name.replace("_", "-"))


class Faulty:
    """Stands before an adapter and makes single calls of it fail, or slow, for as long as ``fault`` says."""

    def __init__(self, real: Any, *calls: str, sync: bool = False) -> None:
        self._real, self._calls, self._sync = real, calls, sync
        self.fault: Exception | float | None = None

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._real, name)
        if name not in self._calls:
            return call

        async def later(*args: Any, **more: Any) -> Any:
            if isinstance(self.fault, Exception):
                raise self.fault
            await asyncio.sleep(self.fault or 0)
            return await call(*args, **more)

        def now(*args: Any, **more: Any) -> Any:
            if isinstance(self.fault, Exception):
                raise self.fault
            time.sleep(self.fault or 0)
            return call(*args, **more)

        return now if self._sync else later


def away(retry_after: float = 0.1) -> Waiting:
    return Waiting("The storage is away.", code="storage_away", retry_after=retry_after)


def fails_again_and_again(row: ClusterRow) -> bool:
    records = row.projection.steps if row.projection else ()
    return any(record.state is StepState.WAITING and record.attempts > 2 for record in records)


def is_waiting(row: ClusterRow) -> bool:
    return bool(row.projection and "is away" in row.projection.waiting_for)


def is_blocked(row: ClusterRow) -> bool:
    return bool(row.projection and row.projection.status_of(ConditionType.BLOCKED) is ConditionStatus.TRUE)


async def change_secrets(walk: Walk, cluster: UUID, keys: Sequence[str]) -> None:
    changes = [await stage(walk.centre, cluster, key) for key in keys]
    await asyncio.gather(*(walk.centre.fleet.change_secrets(cluster, [c.request]) for c in changes))
    await walk.told(cluster)


async def commit_as_a_gateway(walk: Walk, cluster: UUID, key: str) -> None:
    """Commits a secret without the workflow, and returns when that knows of it."""
    change = await stage(walk.centre, cluster, key)
    ports = walk.centre.ports
    made = await SecretCommits(ports.directory, ports.staging, ports.git).commit(cluster)
    await walk.nudge(cluster)
    newest = made.commits[change.request]
    await walk.until(cluster, lambda row: bool(row.projection and row.projection.desired_revision == newest))
    await walk.told(cluster)


async def is_committed(walk: Walk, cluster: UUID) -> bool:
    return not (await walk.centre.ports.staging.pending(cluster)).changes
