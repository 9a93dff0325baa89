"""Statements of databases. Tests share what has been made of them: each opens a database of its own, and turning each
statement into SQL anew would take a fifth of what a test of the gateway takes in all. And tests can list them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from sqlalchemy import event

from edgewright.adapters.database.engine.compiled_statements import CompiledStatements
from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.engine.engine import open_database as open_by_itself

_BY_KIND: dict[type, CompiledStatements] = {}
"""By the kind of database instead of by the database, which is all that a statement's SQL depends on."""


def open_database(url: str, *, clock: Callable[[], datetime] | None = None) -> Database:
    """As the product opens it."""
    database = open_by_itself(url, clock=clock)
    kind = type(database._engine.dialect)
    database._statements = _BY_KIND.setdefault(kind, database._statements)
    return database


@contextmanager
def statements_of(database: Database) -> Iterator[list[str]]:
    """The text of every statement that is run meanwhile."""
    run: list[str] = []

    def note(_connection: object, _cursor: object, text: str, *_more: object) -> None:
        run.append(text)

    engine = database._engine.sync_engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        yield run
    finally:
        event.remove(engine, "before_cursor_execute", note)
