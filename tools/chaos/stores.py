"""The stores of a centre that was stopped, read with sqlite3 and git alone."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from tools.chaos.golden import DATABASE, REPOSITORIES
from tools.chaos.repositories import CheckedRepository, read_repositories

Row = Mapping[str, Any]
UUIDS = {"uuid", "cluster", "app", "object", "id", "request", "account", "permission", "target", "class"}
DOCUMENTS = {"body", "detail", "spec", "settings", "labels", "must_reenter", "components"}
TABLES = (
    "clusters",
    "entries",
    "changes",
    "objects",
    "memberships",
    "accounts",
    "grants",
    "addresses",
    "credentials",
    "staged_changes",
    "events",
)


@dataclass(frozen=True)
class Stores:
    """Rows of every table that the checker looks at, and every repository."""

    tables: Mapping[str, Sequence[Row]]
    repositories: Sequence[CheckedRepository]

    @property
    def clusters(self) -> dict[str, Row]:
        return {row["uuid"]: row for row in self.tables["clusters"]}

    def of(self, table: str, cluster: str) -> list[Row]:
        """Rows of a table that belong to a cluster."""
        return [row for row in self.tables[table] if row["cluster"] == cluster]

    def entries(self) -> dict[tuple[str, str], Any]:
        """Body of every entry, by Application and object."""
        return {(row["app"], row["object"]): row["body"] for row in self.tables["entries"]}


def read_stores(home: Path) -> Stores:
    """Everything, from a home in which nothing runs."""
    return Stores(read_tables(home), read_repositories(home / REPOSITORIES))


def read_tables(home: Path) -> Mapping[str, Sequence[Row]]:
    """The rows alone."""
    with closing(sqlite3.connect(home / DATABASE)) as database:
        database.row_factory = sqlite3.Row
        return {table: [_plain(row) for row in database.execute(f'SELECT * FROM "{table}"')] for table in TABLES}


def _plain(row: sqlite3.Row) -> Row:
    return {name: _value(name, row[name]) for name in row.keys()}  # noqa: SIM118 - a sqlite3.Row iterates over values


def _value(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in UUIDS and isinstance(value, str) and len(value) == 32:
        return str(UUID(value))
    if name in DOCUMENTS and isinstance(value, str):
        return json.loads(value)
    return value
