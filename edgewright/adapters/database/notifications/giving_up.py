"""Giving notifications up: one that is refused for three days, or all that are as old when nothing is taken."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import uuid4

from sqlalchemy import delete, update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.events.events import record_all
from edgewright.adapters.database.notifications.notification_rows import TOLD, NotificationRecord, body_of
from edgewright.adapters.database.notifications.webhooks import WebhookRecord
from edgewright.adapters.database.tables import notifications
from edgewright.domain.events import EventKind, NewEvent
from edgewright.domain.notifications import GIVE_UP_AFTER
from edgewright.ports.notifications import Outcome

AT_ONCE = 500
"""Notifications that one transaction gives up."""


def is_late(row: NotificationRecord, at: datetime) -> bool:
    """Whether a notification that was not taken now is not tried again."""
    return row.refused_since is not None and at - row.refused_since >= GIVE_UP_AFTER


async def give_up_refused(
    connection: AsyncConnection, at: datetime, late: Sequence[Outcome], tried: Mapping[int, NotificationRecord]
) -> None:
    """Gives up those whose last try has failed. What waits behind them was refused with them: it has three days from
    when it began to wait, or there would be ever more."""
    if not late:
        return
    await _drop(connection, [one.position for one in late])
    behind = notifications.c.cluster.in_({tried[one.position].cluster for one in late})
    await connection.execute(
        update(notifications)
        .where(behind, notifications.c.refused_since.is_(None))
        .values(refused_since=notifications.c.made_at)
    )
    told = [_event(tried[one.position], tried[one.position].attempts + 1, one.status, one.problem) for one in late]
    await record_all(connection, at, told)


def old_since(webhook: WebhookRecord, at: datetime) -> datetime | None:
    """Up to when waiting news is given up, for a receiver that has taken nothing for three days.

    Not for an outage of the centre: its tries say how long the receiver is away, not the clock. None: it is not.
    """
    since, until = (webhook.stopped_at, at) if webhook.stopped_at else (webhook.failing_since, webhook.last_at)
    if since is None or until is None or until - since < GIVE_UP_AFTER:
        return None
    return until - GIVE_UP_AFTER


async def give_up_old(connection: AsyncConnection, at: datetime, webhook: WebhookRecord) -> int:
    """Gives up what is too old for such a receiver, the oldest first and not more than ``AT_ONCE``; how many."""
    by = old_since(webhook, at)
    if by is None:
        return 0
    oldest = TOLD.where(notifications.c.made_at <= by).order_by(notifications.c.position).limit(AT_ONCE)
    old = [NotificationRecord._make(row) for row in await connection.execute(oldest)]
    await _drop(connection, [row.position for row in old])
    problem = webhook.last_problem or ""
    told = [_event(row, row.attempts, webhook.last_status, row.problem or problem) for row in old]
    await record_all(connection, at, told)
    return len(old)


async def _drop(connection: AsyncConnection, positions: Sequence[int]) -> None:
    await connection.execute(delete(notifications).where(notifications.c.position.in_(positions)))


def _event(row: NotificationRecord, attempts: int, status: int | None, problem: str) -> NewEvent:
    body = body_of(row)
    tries = {0: "without a try", 1: "after 1 try"}.get(attempts, f"after {attempts} tries")
    return NewEvent(
        id=uuid4(),
        cluster=row.cluster,
        actor="centre",
        kind=EventKind.NOTIFICATION_GIVEN_UP,
        message=f"The centre gave up on the notification {body.type} {tries} in three days. {problem}",
        detail={"type": body.type.value, "event": str(row.id), "attempts": attempts, "status": status},
    )
