"""Compares the columns that a statement selects with the type that is made of its rows."""

from collections.abc import Collection, Mapping
from datetime import datetime
from types import NoneType, UnionType
from typing import Any, get_args

from sqlalchemy import Column, ColumnElement, Select
from sqlalchemy.sql.elements import Label

from edgewright.adapters.database.columns import (
    DOCUMENT,
    MOMENT,
    Choice,
    CommitsByPlace,
    OpenChoice,
    PlaceText,
    PlaceTexts,
)
from edgewright.adapters.database.events.events import EventColumns
from edgewright.domain.kubernetes_names import StoredPlace
from edgewright.ports.git_server import CommitId

WORD = EventColumns.__annotations__["kind"]
OF_PLACES = {PlaceText: StoredPlace, PlaceTexts: list[StoredPlace], CommitsByPlace: dict[StoredPlace, CommitId]}


def misfits(statement: Select[Any], hints: Mapping[str, Any], narrowed: Collection[str] = ()) -> list[str]:
    """Columns whose values are of another type than the record says, or null where it knows of no null.

    Args:
        hints: name -> type.
        narrowed: columns that hold more than what is read or written there.
    """
    return [
        name
        for name, column in ((column.key or "", column) for column in statement.selected_columns)
        if name not in narrowed and (name not in hints or not fits(column, hints[name]))
    ]


def fits(column: ColumnElement[Any], hint: Any) -> bool:
    """Whether what the column holds is of that type. With a label, it may be null where the column itself never is:
    its table may have no row to join."""
    kinds = set(get_args(hint) if isinstance(hint, UnionType) else (hint,))
    read, may_be_null = (column.element if isinstance(column, Label) else column), NoneType in kinds
    if isinstance(column, Column) and column.type is not DOCUMENT and column.nullable is not may_be_null:
        return False
    if isinstance(read, Column) and read.nullable and not may_be_null:
        return False
    if column.type is DOCUMENT:
        return not kinds & {str, int, bool, datetime}
    if type(column.type) in OF_PLACES:
        return kinds - {NoneType} == {OF_PLACES[type(column.type)]}
    if isinstance(column.type, OpenChoice):
        return bool(hint == WORD)
    if isinstance(column.type, Choice):
        longest = max(len(member) for member in column.type.members)
        return kinds - {NoneType} == {column.type.members} and longest <= (column.type.length or 0)
    return kinds - {NoneType} == {datetime if column.type is MOMENT else column.type.python_type}
