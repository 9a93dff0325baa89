"""The webhook of the installation: one row, and what its newest try came to."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Select, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.engine.errors import again_after_collision
from edgewright.adapters.database.events.events import record
from edgewright.adapters.database.tables import clusters, events, feed, notifications, webhooks
from edgewright.domain.events import EventKind
from edgewright.domain.notifications import GONE, NotificationType, origin_of, type_of
from edgewright.ports.notifications import Backlog, LastDelivery, Outcome, Webhook

SLOT = 1
_OF_TRIES = (
    "failing_since",
    "stopped_at",
    "last_at",
    "last_position",
    "last_status",
    "last_attempts",
    "last_problem",
)
"""Columns that are empty until the receiver was sent something."""
_THE_ROW = select(webhooks)
_LOCKED = _THE_ROW.with_for_update()


class WebhookRecord(NamedTuple):
    """One row of ``webhooks``, in the order of its columns."""

    slot: int
    id: UUID
    url: str
    secret_sha256: bytes
    created_at: datetime
    cursor: int
    failing_since: datetime | None
    stopped_at: datetime | None
    last_at: datetime | None
    last_position: int | None
    last_status: int | None
    last_attempts: int | None
    last_problem: str | None


class SqlWebhooks:
    """Implements ``Webhooks``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @again_after_collision
    async def put(self, webhook: UUID, url: str, secret_sha256: bytes, *, actor: str) -> Webhook:
        """See the port."""
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            before = await locked_webhook(connection)
            fresh = {
                "id": webhook,
                "url": url,
                "secret_sha256": secret_sha256,
                "created_at": at,
                **dict.fromkeys(_OF_TRIES),
            }
            if before is None:
                # The number that was given out last: what is being written now has a larger one.
                seen = await connection.scalar(select(feed.c.position))
                await connection.execute(insert(webhooks).values(slot=SLOT, cursor=seen, **fresh))
            else:
                await connection.execute(update(webhooks).values(**fresh))
                anew = {"next_at": at, "attempts": 0, "refused_since": None, "problem": ""}
                await connection.execute(update(notifications).values(**anew))
            await record(
                connection,
                at,
                cluster=None,
                actor=actor,
                kind=EventKind.WEBHOOK_SET,
                message=f"Notifications now go to {origin_of(url)}.",
                webhook=str(webhook),
            )
            row = WebhookRecord._make((await connection.execute(_THE_ROW)).one())
            return await _webhook(connection, row)

    async def get(self) -> Webhook | None:
        """See the port."""
        async with self._database.read() as connection:
            row = await read_webhook(connection)
            return await _webhook(connection, row) if row is not None else None

    async def remove(self, *, actor: str) -> bool:
        """See the port."""
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            row = await locked_webhook(connection)
            if row is None:
                return False
            await connection.execute(delete(notifications))
            await connection.execute(delete(webhooks))
            await record(
                connection,
                at,
                cluster=None,
                actor=actor,
                kind=EventKind.WEBHOOK_REMOVED,
                message=f"Notifications no longer go to {origin_of(row.url)}.",
                webhook=str(row.id),
            )
            return True


async def read_webhook(connection: AsyncConnection) -> WebhookRecord | None:
    """The row; None without a webhook."""
    return await _found(connection, _THE_ROW)


async def locked_webhook(connection: AsyncConnection) -> WebhookRecord | None:
    """The row, locked for this transaction; None without a webhook."""
    return await _found(connection, _LOCKED)


async def _found(connection: AsyncConnection, statement: Select[Any]) -> WebhookRecord | None:
    row = (await connection.execute(statement)).one_or_none()
    return None if row is None else WebhookRecord._make(row)


async def note_tries(
    connection: AsyncConnection, at: datetime, webhook: WebhookRecord, outcomes: Sequence[Outcome], attempts: int
) -> None:
    """Notes what tries say of the receiver, and the newest of them.

    Args:
        webhook: its row, locked.
        outcomes: at least one.
        attempts: how often the last of them was tried, this time included.
    """
    last = outcomes[-1]
    nothing_taken = all(outcome.problem for outcome in outcomes)
    gone = webhook.stopped_at is None and any(outcome.status == GONE for outcome in outcomes)
    await connection.execute(
        update(webhooks).values(
            failing_since=(webhook.failing_since or at) if nothing_taken else None,
            stopped_at=at if gone else webhook.stopped_at,
            last_at=at,
            last_position=last.position,
            last_status=last.status,
            last_attempts=attempts,
            last_problem=last.problem,
        )
    )
    if gone:
        await record(
            connection,
            at,
            cluster=None,
            actor="centre",
            kind=EventKind.WEBHOOK_STOPPED,
            message=f"{origin_of(webhook.url)} answered that it wants no more notifications (410). The centre sends "
            "none until you set the webhook again.",
            webhook=str(webhook.id),
        )


async def _webhook(connection: AsyncConnection, row: WebhookRecord) -> Webhook:
    return Webhook(
        id=row.id,
        url=row.url,
        secret_sha256=row.secret_sha256,
        created_at=row.created_at,
        stopped_at=row.stopped_at,
        last=await _last(connection, row),
        waiting=await _backlog(connection),
    )


async def _last(connection: AsyncConnection, row: WebhookRecord) -> LastDelivery | None:
    if row.last_position is None or row.last_at is None:
        return None
    of_event = (
        select(events.c.kind, events.c.detail, clusters.c.name)
        .join(clusters, clusters.c.uuid == events.c.cluster)
        .where(events.c.position == row.last_position)
    )
    kind, detail, cluster = (await connection.execute(of_event)).one()
    return LastDelivery(
        at=row.last_at,
        type=NotificationType(type_of(kind, detail) or ""),
        cluster=cluster,
        status=row.last_status,
        attempts=row.last_attempts or 0,
        problem=row.last_problem or "",
    )


async def _backlog(connection: AsyncConnection) -> Backlog | None:
    count = await connection.scalar(select(func.count()).select_from(notifications))
    if not count:
        return None
    oldest = select(notifications.c.made_at, notifications.c.problem).order_by(notifications.c.position).limit(1)
    since, problem = (await connection.execute(oldest)).one()
    return Backlog(count=count, since=since, problem=problem)
