"""Notifications: found among the events by a cursor, kept in rows until they are taken or given up."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import and_, delete, exists, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.events.feed import inserting_if_absent
from edgewright.adapters.database.notifications.fair_queue import coalesce, next_turns
from edgewright.adapters.database.notifications.giving_up import give_up_old, give_up_refused, is_late, old_since
from edgewright.adapters.database.notifications.notification_rows import (
    TOLD,
    FoundEvent,
    NotificationRecord,
    due_of,
    events_behind,
    new_row,
    told_at,
    try_again_later,
)
from edgewright.adapters.database.notifications.webhooks import locked_webhook, note_tries, read_webhook
from edgewright.adapters.database.tables import events, notifications, webhooks
from edgewright.domain.notifications import type_of
from edgewright.ports.notifications import Batch, Collected, Outcome

READ_AT_ONCE = 1000
"""Events that one transaction looks through."""

_earlier = notifications.alias()
_OLDEST_OF_ITS_CLUSTER = ~exists().where(
    and_(_earlier.c.cluster == notifications.c.cluster, _earlier.c.position < notifications.c.position)
)


class SqlNotifications:
    """Implements ``Notifications``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def collect(self) -> Collected:
        """See the port."""
        new = given_up = 0
        while (found := await self._collect_some()) is not None:
            new += found
        while gone := await self._give_up_some():
            given_up += gone
        async with self._database.read() as connection:
            waiting = await connection.scalar(
                select(func.count()).select_from(notifications).where(exists().where(webhooks.c.stopped_at.is_(None)))
            )
        return Collected(new=new, given_up=given_up, waiting=waiting or 0)

    async def _collect_some(self) -> int | None:
        """How many notifications were new among the next events; None: there are no more events."""
        async with self._database.read(long=True) as connection:
            cursor = await connection.scalar(select(webhooks.c.cursor))
            head = await connection.scalar(select(func.max(events.c.position))) or 0
            if cursor is None or head <= cursor:
                return None
            behind = await connection.execute(events_behind(cursor, READ_AT_ONCE))
            found = [FoundEvent._make(row) for row in behind]
        reached = found[-1].position if len(found) == READ_AT_ONCE else head
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            webhook = await locked_webhook(connection)
            if webhook is None or webhook.cursor != cursor:
                return 0  # somebody else has looked through them
            told = [event for event in found if type_of(event.kind, event.detail) is not None]
            if told:
                turns = await next_turns(connection, {event.cluster for event in told})
                rows = [new_row(event, at, turns.take(event.cluster)) for event in told]
                await connection.execute(inserting_if_absent(connection, notifications), rows)
                await coalesce(connection, {event.cluster for event in told})
            await connection.execute(update(webhooks).values(cursor=reached))
            return len(told)

    async def _give_up_some(self) -> int:
        async with self._database.read() as connection:
            at = await self._database.now(connection)
            webhook = await read_webhook(connection)
            if webhook is None or old_since(webhook, at) is None:
                return 0
        async with self._database.write() as connection:
            webhook = await locked_webhook(connection)
            return await give_up_old(connection, at, webhook) if webhook is not None else 0

    async def due(self, limit: int) -> Batch | None:
        """See the port."""
        async with self._database.read() as connection:
            webhook = await read_webhook(connection)
            if webhook is None:
                return None
            if webhook.stopped_at is not None:
                return Batch(webhook.id, webhook.url, webhook.secret_sha256, (), None)
            at = await self._database.now(connection)
            now = (
                TOLD.where(notifications.c.next_at <= at, _OLDEST_OF_ITS_CLUSTER)
                .order_by(notifications.c.attempts, notifications.c.turn, notifications.c.position)
                .limit(limit)
            )
            due = tuple([due_of(NotificationRecord._make(row)) for row in await connection.execute(now)])
            next_in = None if due else await _seconds_until_due(connection, at)
            return Batch(webhook.id, webhook.url, webhook.secret_sha256, due, next_in)

    async def settle(self, webhook: UUID, outcomes: Sequence[Outcome]) -> int:
        """See the port."""
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            here = await locked_webhook(connection)
            if here is None or here.id != webhook:
                return 0
            tried = await told_at(connection, [outcome.position for outcome in outcomes])
            known = [outcome for outcome in outcomes if outcome.position in tried]
            if not known:
                return 0
            failed = [outcome for outcome in known if outcome.problem]
            late = [one for one in failed if is_late(tried[one.position], at)]
            taken = [outcome.position for outcome in known if not outcome.problem]
            await connection.execute(delete(notifications).where(notifications.c.position.in_(taken)))
            again = [(one, tried[one.position]) for one in failed if one not in late]
            await try_again_later(connection, at, again)
            await give_up_refused(connection, at, late, tried)
            await note_tries(connection, at, here, known, tried[known[-1].position].attempts + 1)
            return len(late)


async def _seconds_until_due(connection: AsyncConnection, at: datetime) -> float | None:
    """Seconds until one may be sent next; None: nothing waits."""
    soonest = await connection.scalar(select(func.min(notifications.c.next_at)).where(_OLDEST_OF_ITS_CLUSTER))
    return max(0.0, (soonest - at).total_seconds()) if soonest is not None else None
