"""How a deletion begins and is hastened, inside one transaction."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.config_store.entries import delete_entry
from edgewright.adapters.database.events.events import record
from edgewright.adapters.database.rows.access_rows import let_in_again
from edgewright.adapters.database.rows.cluster_record import NO_PURGE, ClusterChanges, ClusterRecord
from edgewright.adapters.database.rows.cluster_rows import (
    must_read_row,
    raise_change,
)
from edgewright.adapters.database.rows.resealing_rows import ask_again
from edgewright.adapters.database.rows.staged_rows import refuse_staged
from edgewright.domain.cluster import Desired, Workloads
from edgewright.domain.ended import left_on_edge, no_edge_to_purge, patience_of, purge_too_late, refuse_purge
from edgewright.domain.events import EventKind
from edgewright.domain.wellknown import APP_CLUSTER_CONFIGURATION
from edgewright.errors import Conflict
from edgewright.ports.clusters import ClusterRow

DEADLINE = timedelta(hours=24)
"""How long a deletion waits for the edge unless it is told otherwise."""


@dataclass(frozen=True)
class DeletionWrite:
    """One request to delete a cluster, checked as far as that goes without the row."""

    actor: str
    force: bool
    deadline: timedelta | None
    workloads: Workloads
    purge: bool


async def delete_cluster(
    connection: AsyncConnection, at: datetime, row: ClusterRecord, order: DeletionWrite
) -> ClusterRow:
    """A deletion that begins, or one under way that is hastened or is to purge, too.

    Raises:
        Conflict: ``purge_impossible``, ``purge_too_late``.
        Invalid: ``purge_impossible``.
    """
    again = row.desired == Desired.DELETED
    until = at + (DEADLINE if order.deadline is None else order.deadline)
    if again and order.deadline is None and row.deadline is not None:
        until = row.deadline
    adds = again and order.purge and not row.purge
    if again and not adds and not _hastens(row, force=order.force, until=until):
        return await must_read_row(connection, row.uuid)
    if adds:
        _refuse_late_purge(row)
    if again:
        sooner = until if row.deadline is None else min(row.deadline, until)
        await raise_change(
            connection, row, force=row.force or order.force, deadline=sooner, purge=bool(row.purge or order.purge)
        )
        verb = "changed" if adds else "hastened"
    else:
        leaving: ClusterChanges = {
            **NO_PURGE,
            "purge": order.purge,
            "desired": Desired.DELETED,
            "desired_before": row.desired,
            "force": order.force,
            "deadline": until,
            "workloads": order.workloads,
            "inventory_empty_at": None,
            "detached_at": None,
        }
        await raise_change(connection, row, **leaving)
        await let_in_again(connection, row.uuid, row.acceptance)
        await ask_again(connection, at, row.uuid)
        await refuse_staged(connection, row.uuid, "deleting", f"The cluster {row.name} is being deleted.")
        await delete_entry(connection, at, APP_CLUSTER_CONFIGURATION, row.uuid)
        verb = "requested"
    asked = await must_read_row(connection, row.uuid)
    if order.purge and not asked.can_answer:
        raise no_edge_to_purge(row.name)
    edge = left_on_edge(asked.purge, asked.acceptance, over=asked.force)
    await record(
        connection,
        at,
        cluster=row.uuid,
        actor=order.actor,
        kind=EventKind.CLUSTER_DELETION_REQUESTED,
        message=f"The deletion of {row.name} was {verb}; {_patience(asked)}. {edge}".strip(),
        force=asked.force,
        deadline=until.isoformat() if asked.deadline is None else asked.deadline.isoformat(),
        workloads=asked.workloads,
        purge=asked.purge.asked,
    )
    return asked


def _patience(row: ClusterRow) -> str:
    """What the deletion of a cluster waits for."""
    answers = bool(row.can_answer)
    return patience_of(force=row.force, can_answer=answers, acceptance=row.acceptance, deadline=row.deadline)


def _hastens(row: ClusterRecord, *, force: bool, until: datetime) -> bool:
    return (force and not row.force) or row.deadline is None or until < row.deadline


def _refuse_late_purge(row: ClusterRecord) -> None:
    """The commit that empties the edge brings the rights to purge; one that was made without brings none."""
    if row.deletion_begun_at is not None:
        raise purge_too_late(row.name)
    refuse_purge(force=row.force, workloads=row.workloads)


def refuse_undeletion(row: ClusterRecord) -> None:
    """Raises ``Conflict``, code ``not_deleting`` or ``too_late``, where there is no deletion to take back."""
    if row.desired != Desired.DELETED:
        raise Conflict(f"The cluster {row.name} is not being deleted.", code="not_deleting")
    if row.deletion_begun_at is not None:
        raise Conflict(
            f"The deletion of {row.name} has begun and cannot be taken back.",
            code="too_late",
            hint="Wait for its end, then create the cluster again.",
        )
