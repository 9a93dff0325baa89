"""Signs of life, inside a transaction that somebody else began."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row, update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.events import record
from edgewright.adapters.database.tables import clusters
from edgewright.domain.cluster import LeaseState


def renewed_lease(row: Row[Any], at: datetime) -> dict[str, Any]:
    """The columns of a lease that is renewed now."""
    return {"last_heard": at, "lease_expires_at": at + timedelta(seconds=row.lease_seconds)}


async def make_current(connection: AsyncConnection, at: datetime, row: Row[Any]) -> bool:
    """Turns a lease that was not current to current, comparing and setting its epoch; False if it was current."""
    if row.lease_state == LeaseState.CURRENT:
        return False
    heard_of = row.lease_state == LeaseState.EXPIRED
    message = f"{row.name} is heard again." if heard_of else f"{row.name} is heard for the first time."
    return await _turn(connection, at, row, LeaseState.CURRENT, kind="lease.renewed", message=message)


async def make_expired(connection: AsyncConnection, at: datetime, row: Row[Any]) -> bool:
    """Turns a current lease to expired, comparing and setting its epoch; False if it has moved since."""
    heard = row.last_heard.strftime("%Y-%m-%dT%H:%M:%SZ")
    message = f"{row.name} was not heard since {heard}."
    return await _turn(connection, at, row, LeaseState.EXPIRED, kind="lease.expired", message=message)


async def _turn(
    connection: AsyncConnection, at: datetime, row: Row[Any], to: LeaseState, *, kind: str, message: str
) -> bool:
    unmoved = (
        (clusters.c.uuid == row.uuid)
        & (clusters.c.lease_epoch == row.lease_epoch)
        & (clusters.c.lease_state == row.lease_state)
        & (clusters.c.last_heard.is_not_distinct_from(row.last_heard))
    )
    turned = update(clusters).where(unmoved).values(lease_state=to, lease_epoch=row.lease_epoch + 1)
    if not (await connection.execute(turned)).rowcount:
        return False
    uuid: UUID = row.uuid
    await record(connection, at, cluster=uuid, actor="centre", kind=kind, message=message, epoch=row.lease_epoch + 1)
    return True
