"""A connection whose statements go from SQLAlchemy's text straight to the driver (ADR 18).

It is an ``AsyncConnection`` for whoever writes statements. Beneath, SQLAlchemy opens it and says what the text is;
transactions and statements go to the driver without its pool, execution contexts, cursors and switches of stacks.
What needs SQLAlchemy itself (migrations, texts) still goes through it, in the same transaction.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeVar, TypeVarTuple, cast, overload

from sqlalchemy import CursorResult, Executable, ScalarResult
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine
from sqlalchemy.sql.selectable import TypedReturnsRows

from edgewright.adapters.database.engine.compiled_statements import CompiledStatements

Ts = TypeVarTuple("Ts")
T = TypeVar("T")
P = ParamSpec("P")
Given = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None


@dataclass(frozen=True)
class TransactionKind:
    """What a transaction is for.

    Args:
        writes: it may write.
        long: it may read or write many rows, or wait for another process that does.
        patience: seconds that it waits for the lock of another process, on SQLite.
        seconds: that it may take, on PostgreSQL, locks of others included.
        lone: it is one statement that reads. SQLite needs no begin and no end for that.
    """

    writes: bool
    long: bool
    patience: float
    seconds: float
    lone: bool = False


@dataclass(frozen=True)
class Answered:
    """What the driver says. ``changed``: rows; meaningless where rows came back."""

    rows: Sequence[Sequence[Any]]
    changed: int


class Lost(Exception):
    """The connection was lost before its transaction had begun; another one will do."""


class DirectConnection(AsyncConnection):
    """One connection, for one task at a time."""

    def __init__(self, engine: AsyncEngine, statements: CompiledStatements) -> None:
        super().__init__(engine)
        self._statements = statements
        self._handed_over = False
        """SQLAlchemy takes part in this transaction."""

    # --- the driver's part ---------------------------------------------------------------------------------

    @abstractmethod
    async def begins(self, kind: TransactionKind) -> None:
        """Begins a transaction.

        Raises:
            Lost: the connection is of no use any more.
        """

    @abstractmethod
    async def ends(self, *, commit: bool) -> None:
        """Ends it. After an error, the connection is to be discarded."""

    @abstractmethod
    def gives_up(self) -> None:
        """Before it is closed: does what closing must not wait for."""

    @abstractmethod
    async def ask(self, text: str, values: Sequence[Any], *, returns_rows: bool) -> Answered:
        """Runs one statement."""

    @abstractmethod
    async def ask_many(self, text: str, values: Sequence[Sequence[Any]]) -> Answered:
        """Runs a statement for each of the values."""

    # --- transactions --------------------------------------------------------------------------------------

    async def open_transaction(self, kind: TransactionKind) -> None:
        """See ``begins``."""
        await self.begins(kind)
        if self.sync_engine.dispatch.begin:
            self.sync_engine.dispatch.begin(self.sync_connection)

    async def close_transaction(self, *, commit: bool) -> None:
        """See ``ends``."""
        if self._handed_over:
            self._handed_over = False
            await (super().commit() if commit else super().rollback())
        await self.ends(commit=commit)

    # --- statements ----------------------------------------------------------------------------------------

    @overload
    async def execute(
        self,
        statement: TypedReturnsRows[*Ts],
        parameters: Given = None,
        *,
        execution_options: Mapping[str, Any] | None = None,
    ) -> CursorResult[*Ts]: ...

    @overload
    async def execute(
        self, statement: Executable, parameters: Given = None, *, execution_options: Mapping[str, Any] | None = None
    ) -> CursorResult[*tuple[Any, ...]]: ...

    async def execute(
        self, statement: Executable, parameters: Given = None, *, execution_options: Mapping[str, Any] | None = None
    ) -> CursorResult[*tuple[Any, ...]]:
        """As SQLAlchemy's; the result has no cursor any more, as all rows have been fetched."""
        many = parameters is not None and not isinstance(parameters, Mapping)
        rows: Sequence[Mapping[str, Any]] = parameters if many else [parameters or {}]  # type: ignore[list-item,assignment] # `many` says which
        found = None
        if rows and execution_options is None:
            found = self._statements.find(statement, tuple(rows[0]), many=many)
        if found is None:
            await self._hand_over()
            return await super().execute(statement, parameters, execution_options=execution_options)
        compiled, key = found
        ready = [compiled.ready(key, row) for row in rows]
        text = ready[0].text
        if self.sync_engine.dispatch.before_cursor_execute:
            self.sync_engine.dispatch.before_cursor_execute(self.sync_connection, None, text, (), None, many)
        if many:
            answered = await self.ask_many(text, [one.values for one in ready])
        else:
            answered = await self.ask(text, ready[0].values, returns_rows=compiled.returns_rows)
        # It has what is used of a CursorResult: rows, and their number. That class itself needs a cursor.
        return cast("CursorResult[*tuple[Any, ...]]", compiled.answer(answered.rows, answered.changed))

    @overload
    async def scalar(
        self,
        statement: TypedReturnsRows[T],
        parameters: Mapping[str, Any] | None = None,
        *,
        execution_options: Mapping[str, Any] | None = None,
    ) -> T | None: ...

    @overload
    async def scalar(
        self,
        statement: Executable,
        parameters: Mapping[str, Any] | None = None,
        *,
        execution_options: Mapping[str, Any] | None = None,
    ) -> Any: ...

    async def scalar(
        self,
        statement: Executable,
        parameters: Mapping[str, Any] | None = None,
        *,
        execution_options: Mapping[str, Any] | None = None,
    ) -> Any:
        """As SQLAlchemy's."""
        return (await self.execute(statement, parameters, execution_options=execution_options)).scalar()

    @overload
    async def scalars(
        self,
        statement: TypedReturnsRows[T, *tuple[Any, ...]],
        parameters: Given = None,
        *,
        execution_options: Mapping[str, Any] | None = None,
    ) -> ScalarResult[T]: ...

    @overload
    async def scalars(
        self, statement: Executable, parameters: Given = None, *, execution_options: Mapping[str, Any] | None = None
    ) -> ScalarResult[Any]: ...

    async def scalars(
        self, statement: Executable, parameters: Given = None, *, execution_options: Mapping[str, Any] | None = None
    ) -> ScalarResult[Any]:
        """As SQLAlchemy's."""
        return (await self.execute(statement, parameters, execution_options=execution_options)).scalars()

    async def run_sync(self, fn: Callable[..., T], *arg: Any, **kw: Any) -> T:
        """As SQLAlchemy's."""
        await self._hand_over()
        return await super().run_sync(fn, *arg, **kw)

    async def _hand_over(self) -> None:
        if not self._handed_over:
            self._handed_over = True
            await super().begin()
