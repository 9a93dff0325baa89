"""Forgets requests for secrets that have ended, so that their rows do not gather for as long as a cluster lives."""

from datetime import datetime
from typing import Any

from sqlalchemy import Delete, delete, exists, or_, select

from edgewright.adapters.database.access.operators import REMEMBERED
from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.tables import staged_changes
from edgewright.ports.secret_staging import StagedState

BATCH = 200
"""Rows that one transaction looks at: others write in between."""
MOST_BATCHES = 10
"""Of one call; what is left then is for the next."""


class SqlEndedRequests:
    """Implements ``EndedRequests``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def forget(self) -> int:
        forgotten = 0
        for _ in range(MOST_BATCHES):
            async with self._database.write() as connection:
                before = await self._database.now(connection) - REMEMBERED
                result = await connection.execute(_forget(before))
            if not result.rowcount:
                break
            forgotten += result.rowcount
        return forgotten


def _forget(before: datetime) -> Delete:
    """Whole requests among the oldest rows that wait for nothing: half a request would be taken for another one."""
    oldest = (
        select(staged_changes.c.request, staged_changes.c.sealed_at)
        .where(staged_changes.c.state != StagedState.STAGED)
        .order_by(staged_changes.c.sequence)
        .limit(BATCH)
        .subquery()
    )
    other: Any = staged_changes.alias("other")
    still_needed = exists().where(
        other.c.request == staged_changes.c.request,
        or_(other.c.state == StagedState.STAGED, other.c.sealed_at > before),
    )
    due = select(oldest.c.request).where(oldest.c.sealed_at <= before)
    return delete(staged_changes).where(staged_changes.c.request.in_(due), ~still_needed)
