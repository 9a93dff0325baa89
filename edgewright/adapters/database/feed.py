"""The number line of all that is read in order.

A position is taken by updating one row inside the transaction that uses it. Whoever comes next waits for that
row until the first has committed, so the order of positions is the order in which they become visible, and a
reader that has seen a position has seen all before it. Positions are taken after every other lock.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Table, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.tables import feed


async def take_positions(connection: AsyncConnection, count: int = 1) -> range:
    """The next ``count`` positions, this transaction's own."""
    statement = update(feed).where(feed.c.id == 1).values(position=feed.c.position + count)
    last: int = (await connection.execute(statement.returning(feed.c.position))).scalar_one()
    return range(last - count + 1, last + 1)


async def insert_if_absent(connection: AsyncConnection, table: Table, rows: Sequence[Mapping[str, Any]]) -> int:
    """Inserts the rows whose key is not there yet; returns how many that were."""
    if not rows:
        return 0
    insert = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    inserted = 0
    for row in rows:
        result = await connection.execute(insert(table).values(**row).on_conflict_do_nothing())
        inserted += result.rowcount
    return inserted
