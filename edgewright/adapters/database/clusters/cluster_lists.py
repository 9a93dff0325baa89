"""Lists of clusters: filtered, sorted, and one page at a time.

A page ends with a cursor: the sort, and the sort value and UUID of its last line. The next page begins behind
that pair, so that lines which come and go in between neither repeat nor hide others.
"""

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Select, case, func, literal, select, tuple_

from edgewright.adapters.database.columns import MOMENT
from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.tables import clusters, labels
from edgewright.domain.cluster import ConditionStatus, Phase
from edgewright.domain.names import name_key
from edgewright.domain.verdicts import Trouble
from edgewright.errors import Invalid
from edgewright.ports.clusters import ClusterFilter, ClusterPage, ClusterSummary

HIDDEN = (Phase.REMOVED, Phase.DELETED)
"""Phases that a list shows only when it is asked for them."""
LARGEST_PAGE = 500
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
"""Where a cluster that was never heard stands in the order of when clusters were heard."""


def _moment(value: Any) -> datetime:
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError("a moment without a time zone")
    return moment.astimezone(UTC)


def _text(value: Any) -> str:
    text = str(value)
    if "\0" in text:
        raise ValueError("a text that no database can compare with")
    text.encode()  # raises for half of a surrogate pair, which is none either
    return text


def _rank(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= max(Trouble):
        raise ValueError("no place in an order of trouble")
    return value


@dataclass(frozen=True)
class _Sort:
    """One way to sort. ``read``: the sort value out of a cursor; ``by_name``: what is equal is in order of names."""

    value: ColumnElement[Any]
    read: Callable[[Any], Any]
    by_name: bool = False

    @property
    def keys(self) -> tuple[ColumnElement[Any], ...]:
        return (self.value, clusters.c.name_key) if self.by_name else (self.value,)

    def position(self, values: Any) -> tuple[ColumnElement[Any], ...]:
        """The keys out of a cursor."""
        value, *names = values if self.by_name else [values]
        read = [self.read(value), *map(_text, names)]
        return tuple(literal(each, key.type) for each, key in zip(read, self.keys, strict=True))


def _statuses(column: ColumnElement[Any]) -> _Sort:
    order = case((column == ConditionStatus.FALSE, 0), (column == ConditionStatus.UNKNOWN, 1), else_=2)
    return _Sort(order, _rank, by_name=True)


def _bad_when_true(column: ColumnElement[Any]) -> _Sort:
    return _Sort(case((column.is_(True), 0), else_=1), _rank, by_name=True)


_SORTS = {
    "name": _Sort(clusters.c.name_key, _text),
    "phase": _Sort(clusters.c.phase, _text),
    "created": _Sort(clusters.c.created_at, _moment),
    "last_heard": _Sort(func.coalesce(clusters.c.last_heard, _NEVER, type_=MOMENT), _moment),
    "trouble": _Sort(clusters.c.trouble, _rank, by_name=True),
    "blocked": _bad_when_true(clusters.c.blocked),
    "healthy": _statuses(clusters.c.healthy),
    "synced": _statuses(clusters.c.synced),
    "paused": _bad_when_true(clusters.c.paused),
}


class ListedColumns(NamedTuple):
    """Columns of ``clusters`` that a list shows; they are selected in this order."""

    uuid: UUID
    name: str
    phase: Phase
    ready: bool
    available: ConditionStatus
    labels: dict[str, str]
    generation: int
    created_at: datetime
    last_heard: datetime | None
    waiting_for: str
    blocked: bool
    synced: ConditionStatus
    healthy: ConditionStatus
    paused: bool
    closed_at: datetime | None


_SHOWN = tuple(clusters.c[name] for name in ListedColumns._fields)


async def read_page(database: Database, filter_: ClusterFilter) -> ClusterPage:
    """The page that a filter asks for. Raises as ``ClusterDirectory.page`` does."""
    if not 1 <= filter_.limit <= LARGEST_PAGE:
        raise Invalid(f"A page has 1 to {LARGEST_PAGE} lines.", code="limit_invalid", where="limit")
    statement, keys = _sorted(_filtered(filter_), filter_)
    named = (key.label(f"sort_key_{number}") for number, key in enumerate(keys))
    statement = statement.add_columns(*named).limit(filter_.limit + 1)
    async with database.read(long=True) as connection:
        rows: list[Sequence[Any]] = list(await connection.execute(statement))
    width = len(_SHOWN)
    shown = [ListedColumns._make(row[:width]) for row in rows[: filter_.limit]]
    more = len(rows) > filter_.limit
    following = _cursor(filter_.sort, shown[-1].uuid, rows[filter_.limit - 1][width:]) if more else None
    return ClusterPage([_summary(row) for row in shown], following)


def _filtered(filter_: ClusterFilter) -> Select[Any]:
    statement = select(*_SHOWN)
    if filter_.phase is None:
        statement = statement.where(clusters.c.closed_at.is_(None), clusters.c.phase.not_in(HIDDEN))
    else:
        statement = statement.where(clusters.c.phase == filter_.phase)
    if filter_.ready is not None:
        statement = statement.where(clusters.c.ready.is_(filter_.ready))
    if filter_.available is not None:
        is_available = clusters.c.available == ConditionStatus.TRUE
        statement = statement.where(is_available if filter_.available else ~is_available)
    for column, flag in ((clusters.c.blocked, filter_.blocked), (clusters.c.paused, filter_.paused)):
        if flag is not None:
            statement = statement.where(column.is_(flag))
    for column, status in ((clusters.c.synced, filter_.synced), (clusters.c.healthy, filter_.healthy)):
        if status is not None:
            statement = statement.where(column == status)
    if "\0" in (filter_.name or ""):
        raise Invalid("No name holds a NUL character.", code="name_invalid", where="name")
    if filter_.name:
        statement = statement.where(clusters.c.name_key.contains(name_key(filter_.name), autoescape=True))
    for key, value in filter_.labels.items():
        labelled = select(labels.c.cluster).where(labels.c.key == key, labels.c.value == value)
        statement = statement.where(clusters.c.uuid.in_(labelled))
    return statement


def _sorted(statement: Select[Any], filter_: ClusterFilter) -> tuple[Select[Any], tuple[ColumnElement[Any], ...]]:
    downwards = filter_.sort.startswith("-")
    sort = _SORTS.get(filter_.sort.removeprefix("-"))
    if sort is None:
        names = ", ".join(_SORTS)
        raise Invalid(
            f"Clusters are sorted by {names}, with - in front downwards.",
            code="sort_invalid",
            hint="For example sort=-last_heard.",
            where="sort",
        )
    keys = (*sort.keys, clusters.c.uuid)
    here = tuple_(*keys)
    if filter_.after is not None:
        there = tuple_(*_position(filter_, sort))
        statement = statement.where(here < there if downwards else here > there)
    return statement.order_by(*(key.desc() if downwards else key.asc() for key in keys)), sort.keys


def _cursor(sort: str, last: UUID, keys: Sequence[Any]) -> str:
    """Where the next page begins: behind a cluster with these sort keys."""
    first, *names = keys
    value = first.isoformat() if isinstance(first, datetime) else first
    position = [sort, [value, *names] if names else value, str(last)]
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode()


def _position(filter_: ClusterFilter, sort: _Sort) -> tuple[ColumnElement[Any], ...]:
    from_text = filter_.after or ""
    try:
        of_sort, value, uuid = json.loads(base64.urlsafe_b64decode(from_text.encode()))
        if of_sort != filter_.sort:
            raise ValueError("a cursor of another sort")
        return *sort.position(value), literal(UUID(uuid), clusters.c.uuid.type)
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        raise Invalid(
            "This is no continuation of this list.",
            code="after_invalid",
            hint="Use `next` of the page before, with the same sort.",
            where="after",
        ) from None


def _summary(row: ListedColumns) -> ClusterSummary:
    return ClusterSummary(
        uuid=row.uuid,
        name=row.name,
        phase=row.phase,
        ready=row.ready,
        available=row.available,
        labels=row.labels,
        generation=row.generation,
        created_at=row.created_at,
        last_heard=row.last_heard,
        waiting_for=row.waiting_for,
        blocked=row.blocked,
        synced=row.synced,
        healthy=row.healthy,
        paused=row.paused,
        deleted_at=row.closed_at,
    )
