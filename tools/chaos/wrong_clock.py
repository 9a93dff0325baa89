"""What a process whose clock was 400 days ahead has left in the database: any of the moments that it writes."""

from collections.abc import Sequence
from datetime import timedelta
from random import Random
from typing import Any

from sqlalchemy import Column

from edgewright.adapters.database.tables import clusters, gateway_presence, last_sweep
from edgewright.adapters.database.upkeep.stored_moments import MENDED

AHEAD = timedelta(days=400)
PRESENCE = gateway_presence.c.listening_until
SPARED = {
    clusters.c.created_at: "the checker tells the lives of a name apart by it",
    clusters.c.deadline: "nobody knows what it was: it is mended to a day from now, and no run lasts as long",
}
"""What stays as it is, and why."""
OTHERS: Sequence[Column[Any]] = (
    last_sweep.c.ended_at,
    *(each.column for each in MENDED if each.column not in SPARED),
)
AT_ONCE = 4


def struck(random: Random) -> list[tuple[str, str]]:
    """Tables and columns of which every moment is set ahead: the gateway's presence, and some others."""
    chosen = [PRESENCE, *random.sample(OTHERS, AT_ONCE)]
    return [(column.table.name, column.name) for column in chosen]


def setting(table: str, column: str, ahead: str) -> str:
    """The statement that does so.

    Args:
        ahead: of the moment: an expression, or a placeholder.
    """
    return f"UPDATE {table} SET {column} = {ahead} WHERE {column} IS NOT NULL"
