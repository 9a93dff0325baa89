"""Signs of life, inside a transaction that somebody else began."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TypedDict
from uuid import uuid4

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.events.events import record, record_all
from edgewright.adapters.database.rows.cluster_record import ClusterRecord
from edgewright.adapters.database.tables import clusters
from edgewright.adapters.time_zones import timetable_of
from edgewright.domain.cluster import ClusterSettings, LeaseState
from edgewright.domain.events import EventKind, NewEvent


class RenewedLease(TypedDict):
    """Columns of ``clusters``."""

    last_heard: datetime
    lease_expires_at: datetime


def renewed_lease(row: ClusterRecord, at: datetime) -> RenewedLease:
    """The columns of a lease that is renewed now."""
    return {"last_heard": at, "lease_expires_at": lease_end(at, ClusterSettings.model_validate(row.settings))}


def lease_end(heard: datetime, settings: ClusterSettings) -> datetime:
    """When the lease of an edge that was heard then expires.

    Raises:
        Invalid: ``time_zone_unknown``.
    """
    lease, windows = timedelta(seconds=settings.lease_seconds), timetable_of(settings)
    return heard + lease if windows is None else windows.lease_end(heard, lease)


async def make_expired(connection: AsyncConnection, at: datetime, rows: Sequence[ClusterRecord]) -> None:
    """Turns current leases to expired. ``rows``: locked, so that none has moved since it was read."""
    if not rows:
        return
    turned = update(clusters).where(clusters.c.uuid.in_([row.uuid for row in rows]))
    await connection.execute(turned.values(lease_state=LeaseState.EXPIRED, lease_epoch=clusters.c.lease_epoch + 1))
    await record_all(connection, at, [_expired(row) for row in rows])


def _expired(row: ClusterRecord) -> NewEvent:
    assert row.last_heard is not None  # noqa: S101 - a lease is current from the first sign of life on
    heard = row.last_heard.strftime("%Y-%m-%dT%H:%M:%SZ")
    return NewEvent(
        id=uuid4(),
        cluster=row.uuid,
        actor="centre",
        kind=EventKind.LEASE_EXPIRED,
        message=f"No heartbeat from {row.name} since {heard}.",
        detail={"epoch": row.lease_epoch + 1, "before": row.lease_state},
    )


async def make_current(connection: AsyncConnection, at: datetime, row: ClusterRecord) -> bool:
    """Turns a lease that was not current to current, comparing and setting its epoch; False if it was current."""
    if row.lease_state == LeaseState.CURRENT:
        return False
    unmoved = (
        (clusters.c.uuid == row.uuid)
        & (clusters.c.lease_epoch == row.lease_epoch)
        & (clusters.c.lease_state == row.lease_state)
        & (clusters.c.last_heard.is_not_distinct_from(row.last_heard))
    )
    turned = update(clusters).where(unmoved)
    turned = turned.values(lease_state=LeaseState.CURRENT, lease_epoch=row.lease_epoch + 1)
    if not (await connection.execute(turned)).rowcount:
        return False
    again = row.lease_state == LeaseState.EXPIRED
    await record(
        connection,
        at,
        cluster=row.uuid,
        actor="centre",
        kind=EventKind.LEASE_RENEWED,
        message=f"Heartbeats from {row.name} have resumed." if again else f"{row.name} sent its first heartbeat.",
        epoch=row.lease_epoch + 1,
        before=row.lease_state,
    )
    return True


async def note_joined(connection: AsyncConnection, at: datetime, row: ClusterRecord, *, actor: str) -> None:
    """Tells that the edge of this generation has joined, at its first report or first use of a credential.

    Args:
        row: as it was before that.
    """
    if row.edge_reported_at is None and row.closed_at is None:
        await record(
            connection,
            at,
            cluster=row.uuid,
            actor=actor,
            kind=EventKind.EDGE_JOINED,
            message=f"An edge has joined as {row.name}.",
            generation=row.generation,
        )
