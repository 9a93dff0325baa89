"""One answer to Prometheus: what this gateway has counted, and what the database says of the fleet."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from api.connections.places import Places, Standing
from api.heartbeats import HeartbeatBatch
from api.held_beats import HeldBeats
from api.metrics import Metrics
from edgewright.errors import EdgewrightError
from edgewright.ports.census import Census, Counted
from edgewright.ports.fleet import Fleet

CENSUS_SECONDS = 5.0
"""How long a census is good: so often, at most, does the database count, however many ask."""
PATIENCE_SECONDS = 5.0
"""How long a scrape waits for a part; Prometheus itself gives up after 10 s."""

T = TypeVar("T")


class Scrape:
    """Puts the answers of one gateway together."""

    def __init__(
        self,
        *,
        metrics: Metrics,
        census: Census,
        fleet: Fleet,
        heartbeats: HeartbeatBatch,
        held_beats: HeldBeats,
        places: Places,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._metrics = metrics
        self._census = census
        self._fleet = fleet
        self._heartbeats = heartbeats
        self._held_beats = held_beats
        self._places = places
        self._clock = clock
        self._turn = asyncio.Lock()
        self._counted: Counted | None = None
        self._counted_at = -CENSUS_SECONDS

    async def exposition(self) -> bytes:
        """All series in Prometheus' text format. A part that is out of reach costs its own series only."""
        metrics = self._metrics
        metrics.heartbeats_waiting.set(len(self._heartbeats))
        metrics.heartbeats_behind.set(self._heartbeats.behind_seconds)
        metrics.heartbeats_held.set(len(self._held_beats))
        for standing in Standing:
            metrics.connections.labels(standing.value).set(self._places.count(standing))
        metrics.connections_limit.set(self._places.limits.overall)
        counted, temporal = await asyncio.gather(self._fleet_counted(), _or_none(self._fleet.healthy()))
        return metrics.exposition(counted, {"database": counted is not None, "temporal": bool(temporal)})

    async def _fleet_counted(self) -> Counted | None:
        async with self._turn:
            if self._clock() - self._counted_at >= CENSUS_SECONDS:
                self._counted = await _or_none(self._census.count())
                self._counted_at = self._clock()
            return self._counted


async def _or_none(asked: Awaitable[T]) -> T | None:
    try:
        return await asyncio.wait_for(asked, PATIENCE_SECONDS)
    except (EdgewrightError, TimeoutError):
        return None
