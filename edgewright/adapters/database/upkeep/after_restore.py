"""What a database that went back in time has to forget and to skip before anything is built upon it.

Repositories may be ahead of it: what was committed after the copy was taken. So every cluster is rendered again: the
database says what is wanted, and a commit that it does not know of must not stay what is delivered. Positions go on
behind every number that was ever given out, so that a reader who resumes where it was misses nothing.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.events.events import record_all
from edgewright.adapters.database.events.feed import take_positions
from edgewright.adapters.database.rows.cluster_record import ClusterRecord
from edgewright.adapters.database.rows.cluster_rows import raise_change
from edgewright.adapters.database.tables import IS_STAGED, clusters, gateway_presence, projections, staged_changes
from edgewright.adapters.database.upkeep.presence import LISTENING_GAP
from edgewright.domain.cluster import Desired
from edgewright.domain.events import EventKind
from edgewright.ports.audit import NewEvent

POSITIONS_SKIPPED = 10_000_000
"""More than are given out between two backups: years of a real fleet, or a thousand a second for three hours."""
_EVENTS_AT_ONCE = 500


async def begin_anew(database: Database, *, made_at: datetime, actor: str = "centre") -> Sequence[UUID]:
    """Prepares a restored database, in one transaction with an event in each timeline; nobody else may use it.

    Args:
        made_at: when the backup was made.

    Returns:
        The clusters that should have a repository in service, as no deletion has touched it that is known here; one
        that was only asked for can still be taken back.
    """
    async with database.write(long=True) as connection:
        at = await database.now(connection)
        found = await connection.execute(select(clusters).where(clusters.c.closed_at.is_(None)))
        rows = [ClusterRecord._make(row) for row in found]
        for row in rows:
            await raise_change(connection, row, rendered_digest=None)
        await _forget_renderings(connection, [row.uuid for row in rows])
        moment = made_at.strftime("%Y-%m-%dT%H:%M:%SZ")
        told = [_event(cluster, moment, actor) for cluster in (None, *(row.uuid for row in rows))]
        await take_positions(connection, POSITIONS_SKIPPED)
        for first in range(0, len(told), _EVENTS_AT_ONCE):
            await record_all(connection, at, told[first : first + _EVENTS_AT_ONCE])
        return [row.uuid for row in rows if row.desired != Desired.DELETED or row.deletion_begun_at is None]


def _event(cluster: UUID | None, made_at: str, actor: str) -> NewEvent:
    return NewEvent(
        id=uuid4(),
        cluster=cluster,
        actor=actor,
        kind=EventKind.CENTRE_RESTORED,
        message=f"The centre was restored from a backup made at {made_at}. Later events are missing here.",
        detail={"made_at": made_at},
    )


async def clusters_with_staged_secrets(database: Database) -> Sequence[UUID]:
    """Clusters for which ciphertext waits that a commit may hold already."""
    waiting = select(staged_changes.c.cluster).where(IS_STAGED).distinct()
    async with database.read() as connection:
        return list(await connection.scalars(waiting))


async def is_listened_to(database: Database) -> bool:
    """Whether a gateway has said within the last moments that it serves from this database."""
    async with database.read() as connection:
        at = await database.now(connection)
        heard = select(gateway_presence.c.id).where(gateway_presence.c.listening_until > at - LISTENING_GAP)
        return await connection.scalar(heard) is not None


async def _forget_renderings(connection: AsyncConnection, open_clusters: Sequence[UUID]) -> None:
    """Takes from each projection what was rendered last, so that rendering is due."""
    still_open = set(open_clusters)
    for cluster, before in list(await connection.execute(select(projections.c.cluster, projections.c.body))):
        if cluster in still_open:
            body = {**before, "done": {**before.get("done", {}), "rendered_digest": None}}
            await connection.execute(update(projections).where(projections.c.cluster == cluster).values(body=body))
