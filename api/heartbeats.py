"""Collects heartbeats and writes them once a second, all in one transaction."""

import asyncio
from uuid import UUID

import structlog

from api.nudges import Nudges
from edgewright.errors import EdgewrightError
from edgewright.ports.edge_reports import EdgeReports, Heartbeat

FLUSH_SECONDS = 1.0
BATCH_LIMIT = 2_000
"""Heartbeats in one transaction."""
WAITING_LIMIT = 50_000
"""Clusters whose newest heartbeat may wait while the database is away; one more is let go."""

_log = structlog.get_logger("edgewright.api")


class HeartbeatBatch:
    """The newest heartbeat of each cluster that was not written yet."""

    def __init__(self, reports: EdgeReports, nudges: Nudges) -> None:
        self._reports = reports
        self._nudges = nudges
        self._waiting: dict[tuple[UUID, int], Heartbeat] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, beat: Heartbeat) -> None:
        """Takes one heartbeat; a newer one of the same cluster and generation replaces it."""
        key = (beat.cluster, beat.generation)
        if key in self._waiting or len(self._waiting) < WAITING_LIMIT:
            self._waiting[key] = beat

    async def flush(self) -> None:
        """Writes what waits; what the database did not take waits on, unless a newer one has come."""
        while self._waiting:
            keys = list(self._waiting)[:BATCH_LIMIT]
            beats = {key: self._waiting.pop(key) for key in keys}
            try:
                transitions = await self._reports.heartbeats(list(beats.values()))
            except EdgewrightError as error:
                self._waiting = {**beats, **self._waiting}
                _log.warning("heartbeats wait for the database", waiting=len(self._waiting), reason=error.detail)
                return
            self._nudges.nudge_many(transitions)

    async def flush_forever(self) -> None:
        """Flushes each ``FLUSH_SECONDS``."""
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            await self.flush()
