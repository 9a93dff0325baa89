"""The audit log and the timelines: one table that only grows."""

from uuid import UUID

from sqlalchemy import func, select

from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.events.events import event_from, record_all
from edgewright.adapters.database.tables import events
from edgewright.ports.audit import Event, NewEvent


class SqlAuditLog:
    """Implements ``AuditLog``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, event: NewEvent) -> None:
        async with self._database.write() as connection:
            await record_all(connection, await self._database.now(connection), [event])

    async def timeline(self, cluster: UUID, *, after: int = 0, limit: int = 1000) -> list[Event]:
        return await self.events(after=after, cluster=cluster, limit=limit)

    async def events(self, *, after: int, cluster: UUID | None = None, limit: int = 200) -> list[Event]:
        wanted = select(events).where(events.c.position > after).order_by(events.c.position).limit(limit)
        if cluster is not None:
            wanted = wanted.where(events.c.cluster == cluster)
        async with self._database.read(long=True) as connection:
            return [event_from(row) for row in (await connection.execute(wanted)).mappings()]

    async def touched(self, *, after: int, limit: int = 2000) -> tuple[int, set[UUID]]:
        wanted = (
            select(events.c.position, events.c.cluster)
            .where(events.c.position > after)
            .order_by(events.c.position)
            .limit(limit)
        )
        async with self._database.read() as connection:
            found = (await connection.execute(wanted)).all()
        return (found[-1].position if found else after), {row.cluster for row in found if row.cluster is not None}

    async def last_position(self) -> int:
        async with self._database.read(long=True) as connection:
            return await connection.scalar(select(func.max(events.c.position))) or 0
