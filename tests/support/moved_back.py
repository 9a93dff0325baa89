"""Time passes at a centre: what its database tells of moves into the past, for the machine's clock stays."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from datetime import datetime, timedelta

from embedded import EmbeddedEdgewright


def move_back(centre: EmbeddedEdgewright, moments: Mapping[str, tuple[str, ...]], time: timedelta) -> None:
    """As if it had all been so much earlier.

    Args:
        moments: columns, by their table.
    """
    with closing(sqlite3.connect(centre.home / "edgewright.db", timeout=30)) as database, database:
        database.execute("BEGIN IMMEDIATE")
        for table, columns in moments.items():
            for column in columns:
                rows = database.execute(f"SELECT rowid, {column} FROM {table} WHERE {column} IS NOT NULL").fetchall()
                assert rows
                moved = [(_earlier(moment, time), row) for row, moment in rows]
                database.executemany(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", moved)


def _earlier(moment: str, time: timedelta) -> str:
    """As the product writes it, zeroes of a whole second included: SQLite compares moments as texts."""
    return (datetime.fromisoformat(moment) - time).isoformat(" ", "microseconds")
