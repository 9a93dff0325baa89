"""The number line of all that is read in order.

A position is taken by updating one row inside the transaction that uses it. Whoever comes next waits for that
row until the first has committed, so the order of positions is the order in which they become visible, and a
reader that has seen a position has seen all before it. Positions are taken after every other lock.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Executable, Table, bindparam, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.tables import feed

_TAKE = (
    update(feed)
    .where(feed.c.id == 1)
    .values(position=feed.c.position + bindparam("count", type_=feed.c.position.type))
    .returning(feed.c.position)
)


async def take_positions(connection: AsyncConnection, count: int = 1) -> range:
    """The next ``count`` positions, this transaction's own."""
    last: int = (await connection.execute(_TAKE, {"count": count})).scalar_one()
    return range(last - count + 1, last + 1)


async def insert_if_absent(connection: AsyncConnection, table: Table, rows: Sequence[Mapping[str, Any]]) -> int:
    """Inserts the rows whose key is not there yet; returns how many that were."""
    if not rows:
        return 0
    statement, inserted = inserting_if_absent(connection, table), 0
    for row in rows:
        inserted += (await connection.execute(statement, row)).rowcount
    return inserted


def inserting_if_absent(connection: AsyncConnection, table: Table) -> Executable:
    """The statement that inserts rows, and leaves alone what is there."""
    return _insert_if_absent(connection.dialect.name, table)


@cache
def _insert_if_absent(dialect: str, table: Table) -> Executable:
    insert = sqlite.insert if dialect == "sqlite" else postgresql.insert
    return insert(table).on_conflict_do_nothing()
