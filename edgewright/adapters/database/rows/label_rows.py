"""The labels of clusters, as rows that lists are filtered by."""

from collections.abc import Mapping
from uuid import UUID

from sqlalchemy import delete, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.tables import labels


async def write_labels(connection: AsyncConnection, cluster: UUID, wanted: Mapping[str, str]) -> None:
    """Makes the labels that lists are filtered by exactly these."""
    await connection.execute(delete(labels).where(labels.c.cluster == cluster))
    await add_labels(connection, cluster, wanted)


async def add_labels(connection: AsyncConnection, cluster: UUID, wanted: Mapping[str, str]) -> None:
    """The labels of a cluster that has none."""
    if wanted:
        rows = [{"cluster": cluster, "key": key, "value": value} for key, value in wanted.items()]
        await connection.execute(insert(labels), rows)
