"""The same stores where the database is PostgreSQL, read with psql and git alone."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from postgresql_server import PostgreSQL

from tools.chaos.settling import UNFINISHED
from tools.chaos.stores import TABLES, Row

STAGED = "SELECT cluster, namespace, name, \"key\" FROM staged_changes WHERE state = 'staged'"


def read_postgresql(postgresql: PostgreSQL, database: str) -> Mapping[str, Sequence[Row]]:
    """The rows alone, as ``read_tables`` gives those of SQLite."""
    return {
        table: [_plain(row) for row in _rows(postgresql, database, f'SELECT * FROM "{table}"')] for table in TABLES
    }


def unfinished(postgresql: PostgreSQL, database: str) -> list[str]:
    """What is still to be done, one line each."""
    statements = (UNFINISHED, STAGED)
    return [str(row) for statement in statements for row in _rows(postgresql, database, statement)]


def _rows(postgresql: PostgreSQL, database: str, statement: str) -> list[dict[str, Any]]:
    shown = postgresql.sql(f"SELECT coalesce(json_agg(t), '[]') FROM ({statement.strip()}) t", database=database)
    rows: list[dict[str, Any]] = json.loads(shown)
    return rows


def _plain(row: Mapping[str, Any]) -> Row:
    return {name: _value(name, value) for name, value in row.items()}


def _value(name: str, value: Any) -> Any:
    """Moments of one form, so that they compare as texts; bytes as bytes."""
    if not isinstance(value, str):
        return value
    if name.endswith("_at"):
        return datetime.fromisoformat(value).isoformat(" ", "microseconds")
    return bytes.fromhex(value.removeprefix("\\x")) if value.startswith("\\x") else value
