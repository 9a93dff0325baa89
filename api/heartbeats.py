"""Collects heartbeats and writes them once a second, all in one transaction."""

import asyncio
import time
from dataclasses import replace
from uuid import UUID

import structlog

from api.nudges import Nudges
from edgewright.domain.identity import Link
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

    def __init__(self, edge_reports: EdgeReports, nudges: Nudges) -> None:
        self._edge_reports = edge_reports
        self._nudges = nudges
        self._waiting: dict[tuple[UUID, int], Heartbeat] = {}
        self._written_at = time.monotonic()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def behind_seconds(self) -> float:
        """Seconds since nothing waited: about ``FLUSH_SECONDS``, unless they cannot be written."""
        return time.monotonic() - self._written_at

    def add(self, beat: Heartbeat) -> None:
        """Takes one heartbeat; a newer one of the same cluster and generation adds what it knows."""
        key = (beat.cluster, beat.generation)
        earlier = self._waiting.get(key)
        if earlier is not None:
            self._waiting[key] = _merged(earlier, beat)
        elif len(self._waiting) < WAITING_LIMIT:
            self._waiting[key] = beat

    async def flush(self) -> None:
        """Writes what waits; what the database did not take waits on, unless a newer one has come."""
        while self._waiting:
            keys = list(self._waiting)[:BATCH_LIMIT]
            beats = {key: self._waiting.pop(key) for key in keys}
            try:
                transitions = await self._edge_reports.heartbeats(list(beats.values()))
            except EdgewrightError as error:
                for key, beat in beats.items():
                    newer = self._waiting.get(key)
                    self._waiting[key] = beat if newer is None else _merged(beat, newer)
                _log.warning("heartbeats not written, trying again", waiting=len(self._waiting), reason=error.detail)
                return
            self._nudges.nudge_many(transitions)
        self._written_at = time.monotonic()

    async def flush_forever(self) -> None:
        """Flushes each ``FLUSH_SECONDS``."""
        while True:
            await asyncio.sleep(FLUSH_SECONDS)
            await self.flush()


def _merged(earlier: Heartbeat, later: Heartbeat) -> Heartbeat:
    """The later one, with what only the earlier one has said."""
    return replace(
        later,
        clock_offset=earlier.clock_offset if later.clock_offset is None else later.clock_offset,
        observed_revision=later.observed_revision or earlier.observed_revision,
        link=_linked(earlier, later),
        reach=later.reach or earlier.reach,
        is_where_wanted=later.is_where_wanted if later.reach else earlier.is_where_wanted,
        is_usual=later.is_usual if later.reach else earlier.is_usual,
    )


def _linked(earlier: Heartbeat, later: Heartbeat) -> Link | None:
    if earlier.link is None or later.link is None:
        return later.link or earlier.link
    return later.link.after(earlier.link)
