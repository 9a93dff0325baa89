"""Clusters whose generated files depend on an entry, inside a transaction that somebody else began."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.tables import clusters, rendered_from

BATCH = 500
"""Rows that one statement names."""


def uses_template(app: UUID, object_: UUID) -> ColumnElement[bool]:
    """Whether a cluster's files were rendered with an entry, or none were yet: the entry may be what blocks it."""
    of_cluster = select(rendered_from.c.cluster).where(rendered_from.c.cluster == clusters.c.uuid)
    uses = of_cluster.where(rendered_from.c.app == app, rendered_from.c.object == object_).exists()
    return clusters.c.closed_at.is_(None) & or_(uses, ~of_cluster.exists())


async def note_changed_template(connection: AsyncConnection, at: datetime, app: UUID, object_: UUID) -> None:
    """Notes that an entry of generated files changes, so that the sweep tells whoever uses it and was not told.

    To be called before the entry is written: rows are locked before the feed's counter, in the order of their UUIDs.
    """
    locked = select(clusters.c.uuid).where(uses_template(app, object_)).order_by(clusters.c.uuid).with_for_update()
    users = list(await connection.scalars(locked))
    for start in range(0, len(users), BATCH):
        named = clusters.c.uuid.in_(users[start : start + BATCH])
        await connection.execute(update(clusters).where(named).values(news_at=at))
