"""Staged changes as rows."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, NamedTuple, TypedDict
from uuid import UUID

from sqlalchemy import bindparam, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.engine.portions import in_portions
from edgewright.adapters.database.tables import IS_STAGED, staged_changes
from edgewright.domain.kubernetes_names import SecretKey, SecretPlace, SecretReference
from edgewright.domain.secret_template import TemplateChange
from edgewright.ports.secret_staging import StagedChange, StagedState

OF_REQUESTS = staged_changes.c.request.in_(bindparam("requests", expanding=True))
INSERT = insert(staged_changes)


class StagedRecord(NamedTuple):
    """One row of ``staged_changes``, in the order of its columns."""

    sequence: int
    request: UUID
    cluster: UUID
    generation: int
    state: StagedState
    namespace: str
    name: str
    key: str
    fingerprint: str | None
    sealed_at: datetime
    actor: str
    commit: str | None
    refusal_code: str
    refusal: str
    ciphertext: str | None
    deletes: bool
    replaces: str | None
    template: dict[str, Any] | None
    creates_namespace: bool | None


class RefusedColumns(TypedDict):
    """What a change says that will never be committed."""

    state: StagedState
    refusal_code: str
    refusal: str
    ciphertext: None


_NO_KEY = ""
"""Stands for a key where only labels and annotations change."""
_READ = select(staged_changes).where(OF_REQUESTS).order_by(staged_changes.c.sequence)


async def of_requests(connection: AsyncConnection, requests: Sequence[UUID]) -> dict[UUID, list[StagedChange]]:
    """The changes of each request that is known, in order."""
    found: dict[UUID, list[StagedChange]] = {}
    rows = await connection.execute(_READ, {"requests": list(requests)})
    async for row in in_portions(map(StagedRecord._make, rows)):
        found.setdefault(row.request, []).append(change_of(row))
    return found


def change_of(row: StagedRecord) -> StagedChange:
    """The change that a row holds."""
    return StagedChange(
        request=row.request,
        cluster=row.cluster,
        generation=row.generation,
        place=place_of(row),
        ciphertext=row.ciphertext,
        fingerprint=row.fingerprint,
        sealed_at=row.sealed_at,
        actor=row.actor,
        sequence=row.sequence,
        state=row.state,
        commit=row.commit,
        refusal_code=row.refusal_code,
        refusal=row.refusal,
        replaces=row.replaces,
        template=TemplateChange(**row.template) if row.template else None,
        creates_namespace=bool(row.creates_namespace),
    )


def place_of(row: StagedRecord) -> SecretPlace:
    """What the change that a row holds is about."""
    secret = SecretReference(row.namespace, row.name)
    return secret if row.key == _NO_KEY else SecretKey(row.namespace, row.name, row.key)


def new_row(change: StagedChange) -> StagedRecord:
    """The row of a change that has its place in the order, and that nobody has committed."""
    return StagedRecord(
        sequence=change.sequence,
        request=change.request,
        cluster=change.cluster,
        generation=change.generation,
        state=StagedState.STAGED,
        namespace=change.place.namespace,
        name=change.place.name,
        key=change.place.key if isinstance(change.place, SecretKey) else _NO_KEY,
        fingerprint=change.fingerprint,
        sealed_at=change.sealed_at,
        actor=change.actor,
        commit=None,
        refusal_code="",
        refusal="",
        ciphertext=change.ciphertext,
        deletes=change.deletes,
        replaces=change.replaces,
        template=None if change.template is None else asdict(change.template),
        creates_namespace=change.creates_namespace,
    )


async def refuse_staged(connection: AsyncConnection, cluster: UUID, code: str, reason: str) -> int:
    """Ends all changes of a cluster that wait for a commit; returns how many. Their ciphertext goes."""
    waiting = (staged_changes.c.cluster == cluster) & IS_STAGED
    result = await connection.execute(update(staged_changes).where(waiting).values(**refused_columns(code, reason)))
    return result.rowcount


def refused_columns(code: str, reason: str) -> RefusedColumns:
    """What ends a change that waits for a commit. Its ciphertext goes."""
    return {"state": StagedState.REFUSED, "refusal_code": code, "refusal": reason, "ciphertext": None}
