"""A row of the database leaves the function that read it as a record with names and types, never as a ``Row``.

mypy takes any name of a column from a ``Row``, a misspelled one too.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ADAPTER = "edgewright/adapters/database"
UNTYPED = {"Row", "RowMapping"}


def _rows(tree: ast.Module) -> Iterator[int]:
    """Lines that name a type of SQLAlchemy's rows."""
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module=str(module)) if module.split(".")[0] == "sqlalchemy":
                if any(alias.name in UNTYPED for alias in node.names):
                    yield node.lineno
            case ast.Attribute(attr=name) if name in UNTYPED:
                yield node.lineno


def _naming(root: Path) -> dict[str, list[int]]:
    """File below ``ADAPTER`` → the lines that name a row of SQLAlchemy."""
    folder = root / ADAPTER
    found = {
        path.relative_to(folder).as_posix(): [*_rows(ast.parse(path.read_text("utf-8")))]
        for path in sorted(folder.rglob("*.py"))
    }
    return {path: lines for path, lines in found.items() if lines}


def test_no_module_names_a_row_without_types(root: Path) -> None:
    assert _naming(root) == {}


@pytest.mark.parametrize(
    "line",
    [
        "from sqlalchemy import Row",
        "from sqlalchemy.engine import Row as Told",
        "from sqlalchemy import RowMapping, select",
        "import sqlalchemy\ndef _lives(row: sqlalchemy.Row) -> bool: ...",
    ],
)
def test_a_module_that_names_one_would_be_found(line: str) -> None:
    assert [*_rows(ast.parse(line))]
