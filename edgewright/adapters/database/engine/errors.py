"""What a database's complaint means to the caller.

Messages name the database by host and name, never with its user or password; parameters of statements are
hidden by the engine.
"""

import os
import socket
import sqlite3
from collections.abc import Callable, Coroutine
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import asyncpg  # type: ignore[import-untyped] # it ships no types
from sqlalchemy.dialects.postgresql.asyncpg import AsyncAdapt_asyncpg_dbapi
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from edgewright.errors import EdgewrightError, Invalid, Stalled, Waiting

UNAVAILABLE = "database_unavailable"
WRITE_CONFLICT = "write_conflict"

_SQLITE_BUSY = frozenset({"SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PROTOCOL"})
_SQLITE_OUT_OF_REACH = frozenset({"SQLITE_CANTOPEN", "SQLITE_IOERR", "SQLITE_PERM", "SQLITE_AUTH"})
_SQLITE_BROKEN = frozenset({"SQLITE_CORRUPT", "SQLITE_NOTADB"})
_LOST_A_MOMENT_AGO = (AsyncAdapt_asyncpg_dbapi.InternalClientError, asyncpg.InternalClientError)
"""The driver does not call the connection closed yet."""
_UNIQUE_VIOLATION = "23505"
_TRY_AGAIN = frozenset({"40001", "40P01", "55P03"})
_NO_TEXT = frozenset({"22021", "22P05"})
_AWAY = ("08", "53", "57")
_NOT_SET_UP = ("28", "3D")
_CHECK = "Check EDGEWRIGHT_DATABASE_URL, and that the database runs."


_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")


def again_after_collision(
    call: Callable[_Given, Coroutine[Any, Any, _Answer]],
) -> Callable[_Given, Coroutine[Any, Any, _Answer]]:
    """Repeats, once, a transaction that lost a race for a unique value: now it sees who won, and can say so."""

    @wraps(call)
    async def repeated(*args: _Given.args, **kwargs: _Given.kwargs) -> _Answer:
        try:
            return await call(*args, **kwargs)
        except Waiting as collision:
            if collision.code != WRITE_CONFLICT:
                raise
        return await call(*args, **kwargs)

    return repeated


class Translated:
    """A context that raises what a database's complaint means, and lets everything else pass. It may be used again.

    Args:
        database: how messages call it.
    """

    def __init__(self, database: str) -> None:
        self._database = database

    def __enter__(self) -> None:
        """Nothing is to be done."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, (SQLAlchemyError, OSError)):
            meaning = translate(error, self._database)
            if meaning is not None:
                raise meaning from error


def translate(error: Exception, database: str) -> EdgewrightError | None:
    """The error of ours that an error of the database means; None: it is a fault of the program.

    Args:
        database: how messages call the database; free of credentials.
    """
    if isinstance(error, PoolTimeout):
        return _unavailable(f"All connections to the database {database} are busy.")
    if isinstance(error, OSError):
        return _unavailable(f"The database {database} cannot be reached: {_reason(error)}.", _CHECK)
    if isinstance(error, DBAPIError):
        return _from_driver(error, database)
    if isinstance(error, sqlite3.Error):
        return _from_sqlite(getattr(error, "sqlite_errorname", ""), database)
    return None


def stuck(database: str) -> Waiting:
    """Writers of this process stand in each other's way, for a disk that hangs or is too slow for them all."""
    return _unavailable(f"The database {database} takes changes too slowly.")


def _from_driver(error: DBAPIError, database: str) -> EdgewrightError | None:
    name = getattr(error.orig, "sqlite_errorname", None)
    if name is not None:
        return _from_sqlite(str(name), database)
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return _from_postgresql(str(state), database)
    if error.connection_invalidated or isinstance(error.orig, _LOST_A_MOMENT_AGO):
        return _unavailable(f"The connection to the database {database} was lost.")
    return None


def _from_sqlite(name: str, database: str) -> EdgewrightError | None:
    primary = "_".join(name.split("_")[:2])
    if primary in _SQLITE_BUSY:
        return _unavailable(f"The database {database} is locked by another process.")
    if primary in _SQLITE_OUT_OF_REACH:
        return _unavailable(f"The database {database} cannot be read or written ({name}).")
    if primary == "SQLITE_FULL":
        return Waiting(
            f"There is no space left for the database {database}.",
            code="disk_full",
            retry_after=10.0,
            hint="Free space on its disk; everything goes on by itself.",
        )
    if primary == "SQLITE_READONLY":
        return Stalled(
            f"The database {database} may not be written.",
            code="database_read_only",
            hint="Check the owner and mode of the file and its folder.",
        )
    if primary in _SQLITE_BROKEN:
        return Stalled(
            f"The file {database} is damaged or no database.",
            code="database_damaged",
            hint="Put a backup in its place: edgewright admin restore FOLDER.",
        )
    return None


def _from_postgresql(state: str, database: str) -> EdgewrightError | None:
    if state == _UNIQUE_VIOLATION:
        return Waiting("Another request wrote the same at the same time.", code=WRITE_CONFLICT, retry_after=0.1)
    if state in _TRY_AGAIN:
        return Waiting("Two requests waited for each other; this one has to come again.", code=WRITE_CONFLICT)
    if state in _NO_TEXT:
        return Invalid("A text holds a character that no database can store.", code="text_invalid")
    if state.startswith(_AWAY):
        return _unavailable(f"The database {database} is not available now (SQLSTATE {state}).")
    if state.startswith(_NOT_SET_UP):
        return Stalled(
            f"The database {database} lets nobody in with these credentials, or does not exist (SQLSTATE {state}).",
            code="database_refused",
            hint=_CHECK,
        )
    return None


def _reason(error: OSError) -> str:
    """Why a server was not reached, in the words of the system and not in those of a library."""
    if isinstance(error, socket.gaierror):
        return "its host name cannot be resolved"
    return os.strerror(error.errno) if error.errno else "no connection came about"


def _unavailable(detail: str, hint: str | None = None) -> Waiting:
    return Waiting(detail, code=UNAVAILABLE, retry_after=1.0, hint=hint)
