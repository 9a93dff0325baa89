"""What reads make of their rows says what the statements say: columns in their order, and the type of each."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Select, select
from typed_rows import misfits

from edgewright.adapters.database.clusters.cluster_lists import ListedColumns
from edgewright.adapters.database.clusters.wanted_reading import WANTED_CLUSTER, WantedColumns
from edgewright.adapters.database.config_store.entries import EntryRecord
from edgewright.adapters.database.edges.edge_reports import ElsewhereColumns
from edgewright.adapters.database.rows.access_rows import HELD_BY, ORDERS_OF, HeldCredential, OrdersColumns
from edgewright.adapters.database.rows.cluster_record import ClusterRecord
from edgewright.adapters.database.rows.cluster_rows import CLUSTER_FOR_EDGE, WHOLE_CLUSTER, JoinedColumns
from edgewright.adapters.database.tables import changes, clusters, entries, gateway_presence
from edgewright.adapters.database.upkeep.presence import PresenceRecord
from edgewright.ports.config_store import Change

Hints = Mapping[str, Any]
Read = tuple[Select[Any], Sequence[type]]


def _of_clusters(names: Iterable[str]) -> Select[Any]:
    return select(*(clusters.c[name] for name in names))


READS: Mapping[str, Read] = {
    "the whole of a cluster": (WHOLE_CLUSTER, (ClusterRecord, JoinedColumns)),
    "what a workflow works from": (WANTED_CLUSTER, (ClusterRecord, WantedColumns)),
    "who holds a credential": (HELD_BY, (HeldCredential,)),
    "what the agent is told": (ORDERS_OF, (HeldCredential, OrdersColumns)),
    "a list of clusters": (_of_clusters(ListedColumns._fields), (ListedColumns,)),
    "edges that are elsewhere": (_of_clusters(ElsewhereColumns._fields), (ElsewhereColumns,)),
    "an entry": (select(entries), (EntryRecord,)),
    "a line of the change feed": (select(changes), (Change,)),
    "who listens": (select(gateway_presence), (PresenceRecord,)),
}


def hints_of(kinds: Iterable[type]) -> Hints:
    """Name → type, in order."""
    return {name: hint for kind in kinds for name, hint in kind.__annotations__.items()}


@pytest.mark.parametrize("what", READS)
def test_a_record_has_the_columns_of_its_statement_in_their_order(what: str) -> None:
    statement, kinds = READS[what]
    assert list(hints_of(kinds)) == [column.key for column in statement.selected_columns]


@pytest.mark.parametrize("what", READS)
def test_a_field_is_of_the_type_that_is_read(what: str) -> None:
    statement, kinds = READS[what]
    assert misfits(statement, hints_of(kinds)) == []


def test_what_is_left_out_for_an_edge_are_the_last_columns_and_may_be_missing() -> None:
    there = [column.key for column in CLUSTER_FOR_EDGE.selected_columns]
    every = list(hints_of((ClusterRecord, JoinedColumns)))
    assert there == every[: len(there)]
    assert list(JoinedColumns._field_defaults) == every[len(there) :]


def test_a_line_of_the_change_feed_is_made_of_its_values_in_order() -> None:
    assert [field.name for field in fields(Change)] == [column.key for column in changes.columns]


class _Drifted(NamedTuple):
    uuid: str
    closed_at: datetime
    desired: str
    generation: int


def test_a_type_that_has_drifted_would_be_found() -> None:
    assert misfits(_of_clusters(_Drifted._fields), _Drifted.__annotations__) == ["uuid", "closed_at", "desired"]
    narrowed = select(clusters.c.name.label("moved"), clusters.c.change)
    assert misfits(narrowed, {"name": str, "change": int}) == ["moved"]
