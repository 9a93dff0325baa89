"""Rows of ``notifications``, and what they say with the event that they tell of."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypedDict
from uuid import UUID

from sqlalchemy import Select, bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.tables import clusters, events, notifications
from edgewright.domain.bounds import WordOf
from edgewright.domain.events import EventKind
from edgewright.domain.notifications import (
    KINDS,
    Fact,
    Notification,
    NotificationFacts,
    NotifiedCluster,
    facts_of,
    message_of,
    pause_after,
    type_of,
)
from edgewright.ports.notifications import Due, Outcome

TOLD: Select[Any] = (
    select(
        notifications.c.position,
        notifications.c.attempts,
        notifications.c.refused_since,
        notifications.c.problem,
        notifications.c.coalesced,
        events.c.id,
        notifications.c.cluster,
        events.c.kind,
        events.c.at,
        events.c.message,
        events.c.detail,
        clusters.c.name,
    )
    .join(events, events.c.position == notifications.c.position)
    .join(clusters, clusters.c.uuid == notifications.c.cluster)
)
"""Notifications with their events."""


class NotificationRecord(NamedTuple):
    """One row of ``TOLD``: a notification with its event."""

    position: int
    attempts: int
    refused_since: datetime | None
    problem: str
    coalesced: int
    id: UUID
    cluster: UUID
    kind: WordOf[EventKind]
    at: datetime
    message: str
    detail: dict[str, Fact]
    name: str


class FoundEvent(NamedTuple):
    """One row of ``events_behind``."""

    position: int
    cluster: UUID
    kind: WordOf[EventKind]
    detail: dict[str, Fact]


class NotificationColumns(TypedDict):
    """One row of ``notifications``, as it begins to wait."""

    position: int
    cluster: UUID
    made_at: datetime
    next_at: datetime
    attempts: int
    refused_since: None
    problem: str
    turn: int
    coalesced: int


class FailedTry(TypedDict):
    """Parameters of ``_AGAIN``."""

    of_position: int
    new_attempts: int
    since: datetime
    tried_next: datetime
    new_problem: str


_AGAIN = (
    update(notifications)
    .where(notifications.c.position == bindparam("of_position"))
    .values(
        attempts=bindparam("new_attempts"),
        refused_since=bindparam("since"),
        next_at=bindparam("tried_next"),
        problem=bindparam("new_problem"),
    )
)


def events_behind(cursor: int, limit: int) -> Select[Any]:
    """The next events among which notifications are found."""
    return (
        select(events.c.position, events.c.cluster, events.c.kind, events.c.detail)
        .where(events.c.position > cursor, events.c.kind.in_(KINDS), events.c.cluster.is_not(None))
        .order_by(events.c.position)
        .limit(limit)
    )


def new_row(event: FoundEvent, at: datetime, turn: int) -> NotificationColumns:
    """The notification of an event, as it begins to wait.

    Args:
        turn: the lower, the sooner it is sent.
    """
    return {
        "position": event.position,
        "cluster": event.cluster,
        "made_at": at,
        "next_at": at,
        "attempts": 0,
        "refused_since": None,
        "problem": "",
        "turn": turn,
        "coalesced": 0,
    }


def due_of(row: NotificationRecord) -> Due:
    """A row of ``TOLD``, to be sent."""
    return Due(position=row.position, event=row.id, attempts=row.attempts, body=body_of(row))


def body_of(row: NotificationRecord) -> Notification:
    """What a row of ``TOLD`` tells."""
    kind = type_of(row.kind, row.detail)
    if kind is None:
        raise ValueError(f"{row.kind} is not told")
    return Notification(
        type=kind,
        timestamp=row.at,
        data=NotificationFacts(
            cluster=NotifiedCluster(uuid=row.cluster, name=row.name),
            message=message_of(row.message),
            detail=facts_of(kind, row.detail) | ({"coalesced": row.coalesced} if row.coalesced else {}),
        ),
    )


async def told_at(connection: AsyncConnection, positions: Sequence[int]) -> dict[int, NotificationRecord]:
    """Those that still wait, by position."""
    wanted = TOLD.where(notifications.c.position.in_(positions))
    told = [NotificationRecord._make(row) for row in await connection.execute(wanted)]
    return {row.position: row for row in told}


async def try_again_later(
    connection: AsyncConnection, at: datetime, failed: Sequence[tuple[Outcome, NotificationRecord]]
) -> None:
    """Lets those rest that were not taken. ``failed``: with the row of each."""
    if failed:
        await connection.execute(_AGAIN, [_tried_again(outcome, row, at) for outcome, row in failed])


def _tried_again(outcome: Outcome, row: NotificationRecord, at: datetime) -> FailedTry:
    return {
        "of_position": outcome.position,
        "new_attempts": row.attempts + 1,
        "since": row.refused_since or at,
        "tried_next": at + max(pause_after(row.attempts + 1), timedelta(seconds=outcome.rest)),
        "new_problem": outcome.problem,
    }
