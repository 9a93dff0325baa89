"""The types that the reads of credentials, secrets and notifications make of their rows, and what is written of them:
columns in their order, and what each holds."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Select, Table, select
from sqlalchemy.dialects import sqlite
from typed_rows import fits, misfits

from edgewright.adapters.database.access.accounts import AccountRecord, GrantRecord
from edgewright.adapters.database.access.operators import IdempotencyRecord, OperatorTokenRecord
from edgewright.adapters.database.clusters.cluster_steps import CommitEvent
from edgewright.adapters.database.columns import Choice, OpenChoice
from edgewright.adapters.database.events.events import EventColumns
from edgewright.adapters.database.notifications.notification_rows import (
    TOLD,
    FoundEvent,
    NotificationColumns,
    NotificationRecord,
    events_behind,
)
from edgewright.adapters.database.notifications.webhooks import WebhookRecord
from edgewright.adapters.database.rows.access_rows import CredentialRecord, RegistrationTokenRecord
from edgewright.adapters.database.rows.cluster_record import ClusterRecord
from edgewright.adapters.database.rows.heartbeat_rows import RenewalColumns
from edgewright.adapters.database.rows.resealing_rows import ResealingRecord, ResealingSecretRecord
from edgewright.adapters.database.rows.staged_rows import RefusedColumns, StagedRecord
from edgewright.adapters.database.tables import (
    accounts,
    credentials,
    events,
    grants,
    idempotency_keys,
    notifications,
    operator_tokens,
    registration_tokens,
    resealing_secrets,
    resealings,
    staged_changes,
    webhooks,
)
from edgewright.domain.bounds import OtherWord
from edgewright.domain.cluster import CredentialState
from edgewright.domain.events import EventKind

READS: Mapping[str, tuple[Select[Any], type]] = {
    "a credential": (select(credentials), CredentialRecord),
    "a registration token": (select(registration_tokens), RegistrationTokenRecord),
    "an account": (select(accounts), AccountRecord),
    "a grant": (select(grants), GrantRecord),
    "an operator's token": (select(operator_tokens), OperatorTokenRecord),
    "an idempotency key": (select(idempotency_keys), IdempotencyRecord),
    "a staged change": (select(staged_changes), StagedRecord),
    "a re-sealing": (select(resealings), ResealingRecord),
    "a Secret of a re-sealing": (select(resealing_secrets), ResealingSecretRecord),
    "a webhook": (select(webhooks), WebhookRecord),
    "a notification": (TOLD, NotificationRecord),
    "an event that may be told": (events_behind(0, 1), FoundEvent),
    "an event that may name a commit": (select(*(events.c[name] for name in CommitEvent._fields)), CommitEvent),
}
NARROWED = {("FoundEvent", "cluster"), ("CommitEvent", "kind"), ("NotificationColumns", "refused_since")}
"""Columns that hold more than what is read or written there."""
WRITES: Mapping[str, tuple[Table, type]] = {
    "an event": (events, EventColumns),
    "a notification": (notifications, NotificationColumns),
}
"""What is written by another type than it is read → its table, and that type."""


def hints_and_narrowed(record: type) -> tuple[Mapping[str, Any], set[str]]:
    return record.__annotations__, {column for name, column in NARROWED if name == record.__name__}


@pytest.mark.parametrize("what", READS)
def test_a_record_has_the_columns_of_its_statement_in_their_order(what: str) -> None:
    statement, record = READS[what]
    assert list(record.__annotations__) == [column.key for column in statement.selected_columns]


@pytest.mark.parametrize("what", READS)
def test_a_field_is_of_the_type_that_is_read(what: str) -> None:
    statement, record = READS[what]
    assert misfits(statement, *hints_and_narrowed(record)) == []


@pytest.mark.parametrize("what", WRITES)
def test_what_is_written_are_the_columns_of_the_table(what: str) -> None:
    table, written = WRITES[what]
    hints, narrowed = hints_and_narrowed(written)
    assert set(hints) == {column.key for column in table.columns}
    narrowed |= {name for name, hint in hints.items() if fits(table.c[name], hint | None)}
    assert misfits(select(*(table.c[name] for name in hints)), hints, narrowed) == []


def test_a_refusal_changes_columns_of_a_staged_change() -> None:
    assert set(RefusedColumns.__annotations__) < set(StagedRecord._fields)


def test_a_heartbeat_changes_columns_of_its_cluster() -> None:
    hints = dict(RenewalColumns.__annotations__)
    assert hints.pop("beating") is ClusterRecord.__annotations__["uuid"]
    assert set(hints) < set(ClusterRecord._fields)


class _Drifted(NamedTuple):
    id: str
    role: str
    state: CredentialState | None
    created_at: datetime


def test_a_type_that_has_drifted_would_be_found() -> None:
    shown = select(*(credentials.c[name] for name in _Drifted._fields), credentials.c.token)
    assert misfits(shown, _Drifted.__annotations__) == ["id", "role", "state", "token"]


def test_a_kind_that_only_a_newer_program_knows_is_read_as_it_is() -> None:
    kind = events.c.kind.type
    assert isinstance(kind, OpenChoice)
    assert kind.process_result_value("step.done", sqlite.dialect()) is EventKind.STEP_DONE
    assert kind.process_result_value("moon.full", sqlite.dialect()) == OtherWord("moon.full")
    assert kind.process_bind_param(EventKind.STEP_DONE, sqlite.dialect()) == "step.done"


def test_a_state_that_nobody_knows_is_neither_read_nor_written() -> None:
    state = credentials.c.state.type
    assert isinstance(state, Choice)
    assert state.process_result_value("detach-only", sqlite.dialect()) is CredentialState.DETACH_ONLY
    for convert in (state.process_result_value, state.process_bind_param):
        with pytest.raises(ValueError, match="lent"):
            convert("lent", sqlite.dialect())
