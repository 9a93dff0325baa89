"""Events, written inside the transaction of the change that they tell of; and the log of them, which only grows."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypedDict
from uuid import UUID, uuid4

from sqlalchemy import bindparam, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.engine.portions import execute_in_portions
from edgewright.adapters.database.events.feed import inserting_if_absent, take_positions
from edgewright.adapters.database.tables import events
from edgewright.domain.bounds import WordOf
from edgewright.ports.audit import EVERY_EVENT, Event, EventFilter, EventKind, NewEvent

_INSERT = insert(events)
_THERE = select(events.c.id).where(events.c.id.in_(bindparam("ids", expanding=True)))

Fact = str | int | float | bool | None


class EventColumns(TypedDict):
    """One row of ``events``, as it is written."""

    position: int
    id: UUID
    cluster: UUID | None
    actor: str
    kind: WordOf[EventKind]
    at: datetime
    message: str
    detail: Mapping[str, Fact]


async def record(
    connection: AsyncConnection,
    at: datetime,
    *,
    cluster: UUID | None,
    actor: str,
    kind: EventKind,
    message: str,
    event: UUID | None = None,
    **detail: Fact,
) -> None:
    """Writes one event; ``event``: its ID, if it is to be found again, else one of its own."""
    event_id = event or uuid4()
    told = NewEvent(id=event_id, cluster=cluster, actor=actor, kind=kind, message=message, detail=detail)
    [position] = await take_positions(connection)
    await connection.execute(_INSERT, _columns(told, at, position))


async def is_recorded(connection: AsyncConnection, event: UUID) -> bool:
    """Whether the event with an ID is there."""
    return await connection.scalar(select(events.c.position).where(events.c.id == event)) is not None


async def record_all(connection: AsyncConnection, at: datetime, new: Sequence[NewEvent]) -> None:
    """Writes the events whose ID is not there yet, in the order given."""
    distinct = {event.id: event for event in new}
    if not distinct:
        return
    there = set(await connection.scalars(_THERE, {"ids": list(distinct)}))
    missing = [event for event in distinct.values() if event.id not in there]
    if not missing:
        return
    positions = await take_positions(connection, len(missing))
    told = [_columns(event, at, position) for event, position in zip(missing, positions, strict=True)]
    # another transaction may have told of some since
    await execute_in_portions(connection, inserting_if_absent(connection, events), told)


def _columns(event: NewEvent, at: datetime, position: int) -> EventColumns:
    return {
        "position": position,
        "id": event.id,
        "cluster": event.cluster,
        "actor": event.actor,
        "kind": event.kind,
        "at": event.happened_at or at,
        "message": event.message,
        "detail": event.detail,
    }


class SqlAuditLog:
    """Implements ``AuditLog``: the audit log and the timelines are one table."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def append(self, event: NewEvent) -> None:
        async with self._database.write() as connection:
            await record_all(connection, await self._database.now(connection), [event])

    async def timeline(self, cluster: UUID, *, after: int = 0, limit: int = 1000) -> list[Event]:
        return await self.events(after=after, only=EventFilter(clusters=frozenset({cluster})), limit=limit)

    async def events(self, *, after: int, only: EventFilter = EVERY_EVENT, limit: int = 200) -> list[Event]:
        wanted = select(events).where(events.c.position > after).order_by(events.c.position).limit(limit)
        if only.clusters:
            wanted = wanted.where(events.c.cluster.in_(only.clusters))
        if only.kinds:
            wanted = wanted.where(events.c.kind.in_(only.kinds))
        if only.since is not None:
            wanted = wanted.where(events.c.at >= only.since)
        async with self._database.read(long=True) as connection:
            return [Event.model_validate(dict(row)) for row in (await connection.execute(wanted)).mappings()]

    async def touched(self, *, after: int, limit: int = 2000) -> tuple[int, set[UUID]]:
        wanted = (
            select(events.c.position, events.c.cluster)
            .where(events.c.position > after)
            .order_by(events.c.position)
            .limit(limit)
        )
        async with self._database.read() as connection:
            found = [(position, cluster) for position, cluster in await connection.execute(wanted)]
        return (found[-1][0] if found else after), {cluster for _, cluster in found if cluster is not None}

    async def last_position(self) -> int:
        async with self._database.read(long=True) as connection:
            return await connection.scalar(select(func.max(events.c.position))) or 0
