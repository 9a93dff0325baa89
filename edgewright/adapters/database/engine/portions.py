"""Work on many rows, a portion at a time: between portions, everybody else of the process has a turn."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Executable
from sqlalchemy.ext.asyncio import AsyncConnection

PORTION = 100
"""Rows that are read or written at once; some milliseconds of the event loop."""
T = TypeVar("T")


async def execute_in_portions(
    connection: AsyncConnection, statement: Executable, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Executes a statement for each of the rows, in order, within the transaction that is under way."""
    for first in range(0, len(rows), PORTION):
        await connection.execute(statement, rows[first : first + PORTION])
        await asyncio.sleep(0)


async def in_portions(rows: Iterable[T]) -> AsyncIterator[T]:
    """Each of many rows, in order, within the transaction that is under way."""
    left = iter(rows)
    while portion := list(islice(left, PORTION)):
        for row in portion:
            yield row
        await asyncio.sleep(0)
