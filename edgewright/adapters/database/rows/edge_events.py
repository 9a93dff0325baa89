"""Events that an edge causes, as far as the timeline has room for them. What it leaves out is counted and told."""

from collections.abc import Iterable
from datetime import datetime
from typing import TypedDict
from uuid import uuid4

from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.events.events import record_all
from edgewright.adapters.database.rows.cluster_record import ClusterRecord
from edgewright.adapters.database.rows.cluster_rows import update_row
from edgewright.domain.event_room import EventRoom
from edgewright.domain.events import EventKind, NewEvent
from edgewright.errors import TooMany


class RoomColumns(TypedDict):
    """Columns of ``clusters``."""

    event_room: float
    event_room_at: datetime | None
    events_omitted: int


class EdgeEvents:
    """What is told of one edge in one transaction.

    Args:
        row: of ``clusters``, locked.
        is_bounded: False for what an operator reports in its place: that is told, however much it is.
    """

    def __init__(self, row: ClusterRecord, at: datetime, *, is_bounded: bool = True) -> None:
        self._row = row
        self._is_bounded = is_bounded
        self._room = room_of(row).refilled(at)
        self.told: list[NewEvent] = []

    def demand(self, cost: float, what: str) -> None:
        """Takes room for a change that must not go untold.

        Raises:
            TooMany: code ``edge_changes_too_often``: there is none, so the change itself has to wait.
        """
        if not self._is_bounded:
            return
        if not self._room.has(cost):
            raise TooMany(
                f"The edge of {self._row.name} sends {what} too often.",
                code="edge_changes_too_often",
                retry_after=self._room.seconds_until(cost),
            )
        self._room = self._room.spent(cost)

    def tell(self, events: Iterable[NewEvent]) -> None:
        """Takes events, or counts them as left out."""
        for event in events:
            if not self._is_bounded:
                self.told.append(event)
            elif self._room.has(1):
                self._room = self._room.spent(1)
                self._tell_of_omissions()
                self.told.append(event)
            else:
                self._room = self._room.with_omitted(1)

    def note(self, kind: EventKind, message: str, *, actor: str, **detail: str | int | float | bool | None) -> None:
        """``tell`` for one that is made here."""
        row = self._row
        self.tell([NewEvent(id=uuid4(), cluster=row.uuid, actor=actor, kind=kind, message=message, detail=detail)])

    def columns(self) -> RoomColumns:
        """What the row says from now on. An edge that has been quiet since has its omissions told."""
        if self._room.omitted and self._room.has(2):
            self._room = self._room.spent(1)
            self._tell_of_omissions()
        room = self._room
        return {"event_room": room.left, "event_room_at": room.at, "events_omitted": room.omitted}

    async def write(self, connection: AsyncConnection, at: datetime) -> None:
        """Writes the events and the columns."""
        await update_row(connection, self._row.uuid, **self.columns())
        await record_all(connection, at, self.told)

    def _tell_of_omissions(self) -> None:
        omitted = self._room.omitted
        if not omitted:
            return
        self._room = self._room.all_told()
        row = self._row
        message = f"The edge of {row.name} reports too much; events left out: {omitted}."
        self.told.append(
            NewEvent(
                id=uuid4(),
                cluster=row.uuid,
                actor="centre",
                kind=EventKind.EDGE_EVENTS_OMITTED,
                message=message,
                detail={"omitted": omitted},
            )
        )


def room_of(row: ClusterRecord) -> EventRoom:
    """What a row of ``clusters`` says of its room."""
    if row.event_room is None:
        return EventRoom(omitted=row.events_omitted)
    return EventRoom(row.event_room, row.event_room_at, row.events_omitted)
