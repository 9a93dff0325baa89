"""Which signals and updates of Temporal's have been applied, so that none is applied again.

A run that is reset gets its messages once more. Each has an ID that follows from its place and its content, and is
noted in the transaction that applies it.

``retry_step`` and ``skip_step`` are not noted, because they write nothing here: they change the steps of the present
plan, which the projection holds and a reset run takes up again. The same message then finds its step finished, or not
there yet, and is refused. A retry that finds it waiting brings an attempt forward that would come anyway; a skip
meets no other deletion than its own, because one that has begun cannot be taken back.
"""

from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import Column, Index, String, Table, Uuid, delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.columns import MOMENT, metadata
from edgewright.errors import Conflict
from edgewright.ports.clusters import Once

KEPT = timedelta(days=90)
"""Longer than any run is kept that could be reset: Temporal's namespaces keep closed ones for 30 days."""

applied_verbs = Table(
    "applied_verbs",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("cluster", Uuid, nullable=False),
    Column("run", String(64), nullable=False),
    Column("applied_at", MOMENT, nullable=False),
    Index(None, "cluster", "applied_at"),
)


async def note_applied(connection: AsyncConnection, at: datetime, cluster: UUID, once: Once | None) -> bool:
    """Notes that a message is applied in this transaction; the cluster's row is locked.

    Returns:
        False if the same run has applied it: an attempt is repeated, and there is nothing left to do.

    Raises:
        Conflict: code ``verb_repeated``: another run has applied it.
    """
    if once is None:
        return True
    run = await connection.scalar(select(applied_verbs.c.run).where(applied_verbs.c.id == once.verb))
    if run == once.run:
        return False
    if run is not None:
        raise Conflict(
            "It was applied before, by a run of the workflow that was reset since.",
            code="verb_repeated",
            hint="Send it again if it is meant.",
        )
    old = (applied_verbs.c.cluster == cluster) & (applied_verbs.c.applied_at < at - KEPT)
    await connection.execute(delete(applied_verbs).where(old))
    await connection.execute(insert(applied_verbs).values(id=once.verb, cluster=cluster, run=once.run, applied_at=at))
    return True


async def forget_applied(connection: AsyncConnection, cluster: UUID) -> None:
    """Forgets the messages of a cluster that is deleted: whoever brings one again is refused for that."""
    await connection.execute(delete(applied_verbs).where(applied_verbs.c.cluster == cluster))
