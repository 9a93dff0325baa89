"""How a deletion begins and is hastened, inside one transaction."""

from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.config_store.entries import delete_entry
from edgewright.adapters.database.events.events import record
from edgewright.adapters.database.rows.access_rows import let_in_again
from edgewright.adapters.database.rows.cluster_record import NO_PURGE, ClusterChanges, ClusterRecord
from edgewright.adapters.database.rows.cluster_rows import must_read_row, raise_change
from edgewright.adapters.database.rows.resealing_rows import ask_again
from edgewright.adapters.database.rows.staged_rows import refuse_staged
from edgewright.adapters.database.rows.upgrade_rows import drop_wanted
from edgewright.domain.cluster import Desired
from edgewright.domain.deletion import (
    DeletionDecision,
    DeletionRequest,
    DeletionUnderWay,
    DeletionVerb,
    decide_deletion,
    refuse_unanswered_purge,
    sentence_of_deletion,
)
from edgewright.domain.events import EventKind
from edgewright.domain.wellknown import APP_CLUSTER_CONFIGURATION
from edgewright.ports.clusters import ClusterRow


def under_way(row: ClusterRecord) -> DeletionUnderWay | None:
    """The deletion of a cluster; None: it is not being deleted."""
    if row.desired is not Desired.DELETED:
        return None
    return DeletionUnderWay(
        force=row.force,
        deadline=row.deadline,
        workloads=row.workloads,
        purge=bool(row.purge),
        begun=row.deletion_begun_at is not None,
    )


async def delete_cluster(
    connection: AsyncConnection, at: datetime, row: ClusterRecord, request: DeletionRequest, *, actor: str
) -> ClusterRow:
    """A deletion that begins, or one under way that is hastened or is to purge, too.

    Raises:
        Conflict: ``purge_impossible``, ``purge_too_late``.
        Invalid: ``purge_impossible``.
    """
    decision = decide_deletion(row.name, under_way(row), request, now=at)
    if decision is None:
        return await must_read_row(connection, row.uuid)
    if decision.verb is DeletionVerb.REQUESTED:
        await _begin(connection, at, row, decision)
    else:
        await raise_change(connection, row, force=decision.force, deadline=decision.deadline, purge=decision.purge)
    asked = await must_read_row(connection, row.uuid)
    refuse_unanswered_purge(row.name, request, can_answer=asked.can_answer)
    await record(
        connection,
        at,
        cluster=row.uuid,
        actor=actor,
        kind=EventKind.CLUSTER_DELETION_REQUESTED,
        message=sentence_of_deletion(
            row.name,
            decision,
            can_answer=bool(asked.can_answer),
            acceptance=asked.acceptance,
            purge=asked.purge,
        ),
        force=decision.force,
        deadline=decision.deadline.isoformat(),
        workloads=decision.workloads,
        purge=decision.purge,
    )
    return asked


async def _begin(connection: AsyncConnection, at: datetime, row: ClusterRecord, decision: DeletionDecision) -> None:
    leaving: ClusterChanges = {
        **NO_PURGE,
        "purge": decision.purge,
        "desired": Desired.DELETED,
        "desired_before": row.desired,
        "force": decision.force,
        "deadline": decision.deadline,
        "workloads": decision.workloads,
        "inventory_empty_at": None,
        "detached_at": None,
        **await drop_wanted(connection, at, row, "The cluster is being deleted."),
    }
    await raise_change(connection, row, **leaving)
    await let_in_again(connection, row.uuid, row.acceptance)
    await ask_again(connection, at, row.uuid)
    await refuse_staged(connection, row.uuid, "deleting", f"The cluster {row.name} is being deleted.")
    await delete_entry(connection, at, APP_CLUSTER_CONFIGURATION, row.uuid)
