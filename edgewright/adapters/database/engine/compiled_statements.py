"""Statements of SQLAlchemy as the driver takes them: text, parameters in order, and how its values are read (ADR 18).

Making a statement, its text and its parameters anew takes SQLAlchemy longer than SQLite needs to run it. The text of
a statement is made once for each shape; what is left to do for each run is to put the parameters in order.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Delete, Dialect, Executable, Float, Insert, Update
from sqlalchemy.engine.result import IteratorResult, SimpleResultMetaData
from sqlalchemy.exc import InvalidRequestError
from sqlalchemy.sql.cache_key import CacheKey
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import SelectBase
from sqlalchemy.types import TypeEngine

MOST = 1_000
"""Shapes that are kept. The program has some 300; more come from lists that are part of a statement."""

Converter = Callable[[Any], Any]
Parameters = Mapping[str, Any]
Statement = SelectBase | Insert | Update | Delete


class StatementResult(IteratorResult[Any]):
    """Rows, as SQLAlchemy gives them, and how many rows a statement has changed."""

    rowcount: int


@dataclass(frozen=True)
class BoundStatement:
    """One execution, ready for the driver."""

    text: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Known:
    """What is part of a statement.

    Args:
        given: names of the parameters that it was run with.
        constants: all other values, by their names.
    """

    key: CacheKey
    given: frozenset[str]
    constants: Mapping[str, Any]


class CompiledStatement:
    """One shape of a statement, for one dialect."""

    def __init__(self, compiled: SQLCompiler, dialect: Dialect, columns: Sequence[ColumnElement[Any]]) -> None:
        self._compiled = compiled
        self._names = tuple(compiled.positiontup or ())
        self._to_driver = {
            name: converter
            for name, bound in compiled.binds.items()
            if (converter := bound.type.dialect_impl(dialect).bind_processor(dialect)) is not None
        }
        self.expands = bool(compiled.post_compile_params or compiled.literal_execute_params)
        readers = [(index, _reader(column.type, dialect)) for index, column in enumerate(columns)]
        self._from_driver = [(index, reader) for index, reader in readers if reader is not None]
        keys = [column.key or f"column_{index}" for index, column in enumerate(columns)]
        self._shape = SimpleResultMetaData(keys, [_other_keys(column) for column in columns])
        self._width = len(columns)
        self.returns_rows = bool(columns)
        self._known: _Known | None = None

    def ready(self, key: CacheKey, parameters: Parameters) -> BoundStatement:
        """The text, and the values in the order and of the types that the driver takes."""
        values = self._values(key, parameters)
        if not self.expands:
            return BoundStatement(self._compiled.string, self._in_order(self._names, values, self._to_driver))
        expanded = self._compiled.construct_expanded_state(values)
        assert expanded.positiontup is not None  # noqa: S101 - both drivers take parameters by position
        converters = {**self._to_driver, **expanded.processors}
        return BoundStatement(
            expanded.statement, self._in_order(expanded.positiontup, expanded.parameters, converters)
        )

    def answer(self, rows: Sequence[Sequence[Any]], rowcount: int) -> StatementResult:
        """What the driver has answered, as SQLAlchemy would give it. A row is converted when it is looked at.

        Whoever reads many rows in portions thereby converts them in portions too.
        """
        if rows and len(rows[0]) != self._width:
            raise InvalidRequestError("A column is selected twice: give one of the two a label.")
        answer = StatementResult(self._shape, self._read(rows))
        answer.rowcount = rowcount
        return answer

    def _values(self, key: CacheKey, parameters: Parameters) -> Mapping[str, Any]:
        """Every value by its name: the parameters, and what is part of the statement itself.

        That is looked for once where the same statement is run again and again, as those are that modules hold.
        """
        known = self._known
        if known is not None and known.key is key and known.given == parameters.keys():
            return {**known.constants, **parameters}
        values = self._compiled.construct_params(parameters, extracted_parameters=key.bindparams)
        if parameters.keys() <= values.keys():
            constants = {name: value for name, value in values.items() if name not in parameters}
            self._known = _Known(key, frozenset(parameters), constants)
        return values

    def _in_order(
        self, names: Sequence[str], values: Mapping[str, Any], converters: Mapping[str, Converter]
    ) -> tuple[Any, ...]:
        return tuple([converters[name](values[name]) if name in converters else values[name] for name in names])

    def _read(self, rows: Sequence[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
        for row in rows:
            values = list(row)
            for index, reader in self._from_driver:
                values[index] = reader(values[index])
            yield tuple(values)


class CompiledStatements:
    """What has been compiled for a dialect."""

    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._compiled: dict[tuple[Any, ...], CompiledStatement | None] = {}

    def find(
        self, statement: Executable, columns: tuple[str, ...], *, many: bool
    ) -> tuple[CompiledStatement, CacheKey] | None:
        """The compiled statement, and the key that holds the parameters which are part of it.

        None: SQLAlchemy has to run it itself. Those are texts, DDL, statements for which it makes default values in
        Python, and what it cannot cache.

        Args:
            columns: names of the parameters.
            many: there is a list of parameters.
        """
        if not isinstance(statement, Statement):
            return None
        # The one private name of SQLAlchemy here. There is no public way to ask whether two statements have the same
        # text; its maintainers' own example of a cache, `examples/dogpile_caching`, asks in this way.
        key = statement._generate_cache_key()
        if key is None or key.params:
            return None
        shape = (key.key, columns, many)
        try:
            compiled = self._compiled[shape]
        except KeyError:
            if len(self._compiled) >= MOST:
                self._compiled.clear()
            compiled = self._compiled[shape] = self._compile(statement, key, columns, many=many)
        return None if compiled is None else (compiled, key)

    def _compile(
        self, statement: Statement, key: CacheKey, columns: tuple[str, ...], *, many: bool
    ) -> CompiledStatement | None:
        answers = list(statement.exported_columns)
        compiled = self._dialect.statement_compiler(
            self._dialect,
            statement,
            cache_key=key,
            column_keys=list(columns),
            # so that an insert does not ask for the key that the database has made; nobody here wants it
            for_executemany=isinstance(statement, Insert) and not answers,
        )
        if not isinstance(compiled, SQLCompiler) or compiled.insert_prefetch or compiled.update_prefetch:
            return None
        try:
            ours = CompiledStatement(compiled, self._dialect, answers)
        except InvalidRequestError:  # a type whose values can only be read with the driver's description of them
            return None
        return None if many and (ours.expands or ours.returns_rows) else ours


def _other_keys(column: ColumnElement[Any]) -> tuple[Any, ...]:
    """By what a value is found besides its column's key: the column, and its name in the database."""
    name = getattr(column, "name", None)
    return (column,) if name in {None, column.key} else (column, name)


def _reader(kind: TypeEngine[Any], dialect: Dialect) -> Converter | None:
    if isinstance(kind, Float):  # both drivers give a float
        return None
    return kind.dialect_impl(dialect).result_processor(dialect, None)
