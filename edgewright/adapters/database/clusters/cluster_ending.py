"""How operators pause, delete and undelete a cluster."""

from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.config_store.entries import delete_entry, put_entry
from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.events.events import record
from edgewright.adapters.database.rows.access_rows import WORKING, let_in_again, move_credentials
from edgewright.adapters.database.rows.applied_verbs import note_applied
from edgewright.adapters.database.rows.cluster_record import NO_PURGE, ClusterChanges, ClusterRecord
from edgewright.adapters.database.rows.cluster_rows import (
    hold_fence,
    must_read_row,
    open_row,
    raise_change,
    refuse_doubled_identity,
    update_row,
)
from edgewright.adapters.database.rows.resealing_rows import ask_again
from edgewright.adapters.database.rows.staged_rows import refuse_staged
from edgewright.adapters.database.tables import events
from edgewright.domain.cluster import CredentialState, Desired, Fence, Workloads
from edgewright.domain.ended import left_on_edge, no_edge_to_purge, patience_of, purge_too_late, refuse_purge
from edgewright.domain.events import EventKind
from edgewright.domain.wellknown import APP_CLUSTER_CONFIGURATION
from edgewright.errors import Conflict, Superseded
from edgewright.ports.clusters import ClusterRow, Once

DEADLINE = timedelta(hours=24)
"""How long a deletion waits for the edge unless it is told otherwise."""


class ClusterEnding:
    """The writing side of ``Clusters`` that leads to an end, or puts it off."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def request_deletion(
        self,
        cluster: UUID,
        *,
        actor: str,
        force: bool = False,
        deadline: timedelta | None = None,
        workloads: Workloads = Workloads.REMOVE,
        purge: bool = False,
        once: Once | None = None,
    ) -> ClusterRow:
        if purge:
            refuse_purge(force=force, workloads=workloads)
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            row = await open_row(connection, cluster)
            if not await note_applied(connection, at, cluster, once):
                return await must_read_row(connection, cluster)
            again = row.desired == Desired.DELETED
            until = at + (DEADLINE if deadline is None else deadline)
            if again and deadline is None and row.deadline is not None:
                until = row.deadline
            adds = again and purge and not row.purge
            if again and not adds and not _hastens(row, force=force, until=until):
                return await must_read_row(connection, cluster)
            if adds:
                _refuse_late_purge(row)
            if again:
                sooner = until if row.deadline is None else min(row.deadline, until)
                await raise_change(
                    connection, row, force=row.force or force, deadline=sooner, purge=bool(row.purge or purge)
                )
                verb = "changed" if adds else "hastened"
            else:
                leaving: ClusterChanges = {
                    **NO_PURGE,
                    "purge": purge,
                    "desired": Desired.DELETED,
                    "desired_before": row.desired,
                    "force": force,
                    "deadline": until,
                    "workloads": workloads,
                    "inventory_empty_at": None,
                    "detached_at": None,
                }
                await raise_change(connection, row, **leaving)
                await let_in_again(connection, cluster, row.acceptance)
                await ask_again(connection, at, cluster)
                await refuse_staged(connection, cluster, "deleting", f"The cluster {row.name} is being deleted.")
                await delete_entry(connection, at, APP_CLUSTER_CONFIGURATION, cluster)
                verb = "requested"
            asked = await must_read_row(connection, cluster)
            if purge and not asked.can_answer:
                raise no_edge_to_purge(row.name)
            edge = left_on_edge(asked.purge, asked.acceptance, over=asked.force)
            await record(
                connection,
                at,
                cluster=cluster,
                actor=actor,
                kind=EventKind.CLUSTER_DELETION_REQUESTED,
                message=f"The deletion of {row.name} was {verb}; {_patience(asked)}. {edge}".strip(),
                force=asked.force,
                deadline=until.isoformat() if asked.deadline is None else asked.deadline.isoformat(),
                workloads=asked.workloads,
                purge=asked.purge.asked,
            )
            return asked

    async def undelete(self, cluster: UUID, *, actor: str) -> ClusterRow:
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            row = await open_row(connection, cluster)
            _refuse_undeletion(row)
            before = row.desired_before or Desired.PRESENT
            if before is Desired.PRESENT:
                await refuse_doubled_identity(connection, cluster, row.kube_system_uid)
            staying: ClusterChanges = {
                **NO_PURGE,
                "desired": before,
                "desired_before": None,
                "force": False,
                "deadline": None,
                "workloads": Workloads.REMOVE,
                "inventory_empty_at": None,
                "detached_at": None,
            }
            await raise_change(connection, row, **staying)
            if before is Desired.PRESENT:
                await put_entry(connection, at, APP_CLUSTER_CONFIGURATION, cluster, row.spec)
            else:
                # The deletion let them in to detach with; a removed cluster has no business here.
                await move_credentials(connection, cluster, CredentialState.SUSPENDED, of=WORKING)
            await record(
                connection,
                at,
                cluster=cluster,
                actor=actor,
                kind=EventKind.CLUSTER_UNDELETED,
                message=f"The deletion of {row.name} was taken back.",
                desired=before,
            )
            return await must_read_row(connection, cluster)

    async def begin_deletion(self, fence: Fence) -> None:
        async with self._database.write() as connection:
            row = await hold_fence(connection, fence)
            if row.desired != Desired.DELETED:
                raise Superseded(f"The cluster {row.name} is not being deleted.")
            if row.deletion_begun_at is None:
                await update_row(connection, row.uuid, deletion_begun_at=await self._database.now(connection))

    async def set_paused(
        self,
        cluster: UUID,
        *,
        paused: bool,
        reason: str,
        actor: str,
        seen: int | None = None,
        once: Once | None = None,
    ) -> None:
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            row = await open_row(connection, cluster)
            if not await note_applied(connection, at, cluster, once):
                return
            reason = reason if paused else ""
            if (row.paused, row.paused_reason) == (paused, reason):
                return
            if seen is not None and await _paused_or_resumed_at(connection, cluster) > seen:
                raise Conflict(
                    f"The cluster {row.name} was paused or resumed by a later wish.",
                    code="overtaken",
                    hint="See how it is now, and decide again.",
                )
            await raise_change(connection, row, paused=paused, paused_reason=reason)
            await record(
                connection,
                at,
                cluster=cluster,
                actor=actor,
                kind=EventKind.CLUSTER_PAUSED if paused else EventKind.CLUSTER_RESUMED,
                message=f"Commits for {row.name} are paused: {reason}"
                if paused
                else f"Commits for {row.name} go on.",
                reason=reason,
                change=row.change + 1,
            )


def _patience(row: ClusterRow) -> str:
    """What the deletion of a cluster waits for."""
    answers = bool(row.can_answer)
    return patience_of(force=row.force, can_answer=answers, acceptance=row.acceptance, deadline=row.deadline)


async def _paused_or_resumed_at(connection: AsyncConnection, cluster: UUID) -> int:
    """The ``change`` that the newest pause or resume has raised the row to; 0 if nobody knows of one."""
    newest = (
        select(events.c.detail)
        .where(events.c.cluster == cluster, events.c.kind.in_([EventKind.CLUSTER_PAUSED, EventKind.CLUSTER_RESUMED]))
        .order_by(events.c.position.desc())
        .limit(1)
    )
    detail = await connection.scalar(newest)
    return int(detail.get("change") or 0) if detail else 0


def _hastens(row: ClusterRecord, *, force: bool, until: datetime) -> bool:
    return (force and not row.force) or row.deadline is None or until < row.deadline


def _refuse_late_purge(row: ClusterRecord) -> None:
    """The commit that empties the edge brings the rights to purge; one that was made without brings none."""
    if row.deletion_begun_at is not None:
        raise purge_too_late(row.name)
    refuse_purge(force=row.force, workloads=row.workloads)


def _refuse_undeletion(row: ClusterRecord) -> None:
    if row.desired != Desired.DELETED:
        raise Conflict(f"The cluster {row.name} is not being deleted.", code="not_deleting")
    if row.deletion_begun_at is not None:
        raise Conflict(
            f"The deletion of {row.name} has begun and cannot be taken back.",
            code="too_late",
            hint="Wait for its end, then create the cluster again.",
        )
