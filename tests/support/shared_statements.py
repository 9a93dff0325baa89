"""Databases that share what SQLAlchemy has made of statements: a test opens a database of its own, and would else
turn each statement into SQL anew, which takes a fifth of what a test of the gateway takes in all."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from edgewright.adapters.database.engine import Database
from edgewright.adapters.database.engine import open_database as open_by_itself

MOST = 5_000


class _Statements(dict[tuple[Any, ...], Any]):
    """By the kind of database instead of by the database, which is all that a statement's SQL depends on."""

    def get(self, key: tuple[Any, ...], default: Any = None, /) -> Any:
        return super().get(_by_kind(key), default)

    def __setitem__(self, key: tuple[Any, ...], compiled: Any, /) -> None:
        if len(self) >= MOST:
            self.clear()
        super().__setitem__(_by_kind(key), compiled)


_STATEMENTS = _Statements()


def open_database(url: str, *, clock: Callable[[], datetime] | None = None) -> Database:
    """As the product opens it."""
    database = open_by_itself(url, clock=clock)
    for engine in (database._engine, database._readers, database._long_readers):
        engine.update_execution_options(compiled_cache=_STATEMENTS)
    return database


def _by_kind(key: tuple[Any, ...]) -> tuple[Any, ...]:
    dialect, *statement = key
    return type(dialect), *statement
