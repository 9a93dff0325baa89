"""How SQLite finds what a statement asks for: through an index, or by reading a table from end to end."""

import re
import sqlite3
from collections.abc import Iterator, Sequence, Set
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from edgewright.adapters.database.engine.direct_connection import Answered
from edgewright.adapters.database.engine.sqlite_engine import SqliteConnection
from edgewright.adapters.database.tables import metadata

OF_ONE_ROW = frozenset({"feed", "gateway_presence", "last_sweep", "webhooks"})
"""All other tables have more rows the more clusters there are, or the older they become."""
_SCAN = re.compile(r"SCAN (\w+)")


@contextmanager
def recorded_statements() -> Iterator[set[str]]:
    """Collects the text of every statement that this process gives to SQLite meanwhile."""
    texts: set[str] = set()
    with pytest.MonkeyPatch.context() as patch:
        ask, ask_many = SqliteConnection.ask, SqliteConnection.ask_many

        async def noted(self: SqliteConnection, text: str, values: Sequence[Any], *, returns_rows: bool) -> Answered:
            texts.add(text)
            return await ask(self, text, values, returns_rows=returns_rows)

        async def noted_many(self: SqliteConnection, text: str, values: Sequence[Sequence[Any]]) -> Answered:
            texts.add(text)
            return await ask_many(self, text, values)

        patch.setattr(SqliteConnection, "ask", noted)
        patch.setattr(SqliteConnection, "ask_many", noted_many)
        yield texts


def whole_tables(file: Path, texts: Set[str]) -> list[str]:
    """Which tables are read from end to end, and by which statement; one line each."""
    growing = {table.name for table in metadata.sorted_tables} - OF_ONE_ROW
    found = []
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
        for text in sorted(texts):
            plan = database.execute(f"EXPLAIN QUERY PLAN {text}", [None] * text.count("?"))
            scans = [scan[1] for *_, step in plan if (scan := _SCAN.match(step)) and scan[1] in growing]
            found += [f"{table}: {' '.join(text.split())}" for table in scans]
    return found
