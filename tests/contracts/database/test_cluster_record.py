"""The type of a row says what the table says: columns in their order, enumerations, and what may be null."""

from datetime import datetime
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

import pytest
from sqlalchemy.dialects import sqlite
from typed_rows import OF_PLACES

from edgewright.adapters.database.columns import DOCUMENT, MOMENT, Choice
from edgewright.adapters.database.rows.cluster_record import ClusterChanges, ClusterRecord
from edgewright.adapters.database.tables import clusters

COLUMNS = {column.name: column for column in clusters.columns}
ROW, CHANGES = ClusterRecord.__annotations__, ClusterChanges.__annotations__


def kind_of(hint: Any) -> tuple[Any, bool]:
    """The type beside None, and whether None is allowed."""
    parts = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    [kind] = [part for part in parts if part is not NoneType]
    return kind, NoneType in parts


def test_a_record_has_the_columns_in_their_order() -> None:
    assert ClusterRecord._fields == tuple(COLUMNS)


def test_every_column_but_the_key_can_be_changed_and_nothing_else() -> None:
    assert set(CHANGES) == set(COLUMNS) - {"uuid"}
    assert {name: ROW[name] for name in CHANGES} == CHANGES


@pytest.mark.parametrize("name", COLUMNS)
def test_a_field_is_of_the_columns_type(name: str) -> None:
    column = COLUMNS[name]
    kind, is_nullable = kind_of(ROW[name])
    assert is_nullable is bool(column.nullable)
    if column.type is MOMENT:
        assert kind is datetime
    elif column.type is DOCUMENT:
        assert get_origin(kind) is not None
    elif type(column.type) in OF_PLACES:
        assert kind == OF_PLACES[type(column.type)]
    elif isinstance(column.type, Choice):
        assert issubclass(kind, StrEnum) and column.type.members is kind
        assert max(len(member) for member in column.type.members) <= (column.type.length or 0)
    else:
        assert kind is column.type.python_type


def test_what_is_no_member_is_not_written() -> None:
    choice = clusters.c.desired.type
    assert isinstance(choice, Choice)
    with pytest.raises(ValueError, match="prezent"):
        choice.process_bind_param("prezent", sqlite.dialect())
