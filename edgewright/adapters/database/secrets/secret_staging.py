"""Ciphertext on its way to a repository.

The newest change of a key wins, whatever the order of commits. When a change is committed, older ones of the same
key that still wait are marked superseded in the same transaction, so that ``pending`` never offers them; a request
of which every change was superseded has ended without a commit of its own.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict
from uuid import UUID, uuid5

from sqlalchemy import BigInteger, Delete, bindparam, delete, exists, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.access.operators import REMEMBERED
from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.engine.portions import execute_in_portions, in_portions
from edgewright.adapters.database.events.events import record, record_all
from edgewright.adapters.database.rows.cluster_record import ClusterChanges, ClusterRecord
from edgewright.adapters.database.rows.cluster_rows import find_row, update_row
from edgewright.adapters.database.rows.staged_rows import (
    OF_REQUESTS,
    StagedRecord,
    change_of,
    of_requests,
    place_of,
    refused_columns,
)
from edgewright.adapters.database.secrets.staging_batcher import StagingBatcher
from edgewright.adapters.database.tables import IS_STAGED, clusters, staged_changes
from edgewright.domain.events import EventKind
from edgewright.domain.kubernetes_names import SecretKey, SecretPlace, SecretReference
from edgewright.ports.audit import NewEvent
from edgewright.ports.git_server import CommitId
from edgewright.ports.secret_staging import PendingChanges, StagedChange, StagedState

EVENT_NAMESPACE = UUID("5b0c9a2e-5a53-4a8e-8a4f-6a2d3a2c5d11")
"""Names the events of committed changes, so that recording a commit again writes none twice."""
COMMITTABLE = (StagedState.STAGED, StagedState.REFUSED)
"""A removal may refuse what a commit holds already; the commit is the truth."""
FORGET_BATCH = 200
"""Rows that one transaction of ``SqlEndedRequests`` looks at: others write in between."""
MOST_FORGET_BATCHES = 10
"""Batches of one call; what is left then is for the next."""

_CLUSTERS = select(staged_changes.c.cluster).where(OF_REQUESTS).distinct()
_TO_COMMIT = (
    select(staged_changes)
    .where(OF_REQUESTS, staged_changes.c.state.in_(bindparam("states", expanding=True)))
    .order_by(staged_changes.c.sequence)
)
_SEQUENCES = _TO_COMMIT.with_only_columns(staged_changes.c.sequence)
_COMMIT = (
    update(staged_changes)
    .where(staged_changes.c.sequence.in_(bindparam("sequences", expanding=True)))
    .values(state=StagedState.COMMITTED, commit=bindparam("by_commit"), ciphertext=None, refusal_code="", refusal="")
)
_STILL_STAGED = (
    select(staged_changes.c.sequence)
    .where(
        staged_changes.c.cluster.in_(select(staged_changes.c.cluster).where(OF_REQUESTS)),
        IS_STAGED,
        staged_changes.c.sequence < bindparam("before"),
    )
    .limit(1)
)
_SUPERSEDE = (
    update(staged_changes)
    .where(
        staged_changes.c.cluster == bindparam("of_cluster"),
        IS_STAGED,
        staged_changes.c.sequence < bindparam("before"),
        staged_changes.c.namespace == bindparam("of_namespace"),
        staged_changes.c.name == bindparam("of_name"),
        staged_changes.c.key == bindparam("of_key"),
    )
    .values(state=StagedState.SUPERSEDED, ciphertext=None)
)
_GIVE_WAY = (
    update(staged_changes)
    .where(
        staged_changes.c.sequence.in_(bindparam("sequences", expanding=True)),
        IS_STAGED,
        staged_changes.c.replaces.is_not(None),
    )
    .values(state=StagedState.SUPERSEDED, ciphertext=None)
)
_PENDING = (
    select(staged_changes)
    .join(clusters, clusters.c.uuid == staged_changes.c.cluster)
    .where(
        staged_changes.c.cluster == bindparam("of_cluster"),
        IS_STAGED,
        staged_changes.c.generation == clusters.c.generation,
    )
    .order_by(staged_changes.c.sequence)
)
_ASKED_BY = select(staged_changes.c.cluster, staged_changes.c.actor)
_FRONT = _PENDING.with_only_columns(staged_changes.c.request).limit(bindparam("front", type_=BigInteger))


class CommitParameters(TypedDict):
    """Parameters of ``_TO_COMMIT``: of which requests, and in which states."""

    requests: list[UUID]
    states: list[StagedState]


class OlderChanges(TypedDict):
    """Parameters of ``_SUPERSEDE``: the waiting changes of a key before one of them."""

    of_cluster: UUID
    of_namespace: str
    of_name: str
    of_key: str
    before: int


class SqlSecretStaging:
    """Implements ``SecretStaging``."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._batcher = StagingBatcher(database)

    async def stage(self, changes: Sequence[StagedChange]) -> Sequence[StagedChange]:
        if not changes:
            return []
        return await self._batcher.stage(changes)

    async def request(self, request: UUID) -> Sequence[StagedChange]:
        async with self._database.read() as connection:
            return (await of_requests(connection, [request])).get(request, [])

    async def pending(self, cluster: UUID, *, limit: int = 500) -> PendingChanges:
        of_cluster = {"of_cluster": cluster}
        async with self._database.read() as connection:
            front = list(await connection.scalars(_FRONT, {**of_cluster, "front": limit + 1}))
            if len(front) <= limit:
                found = await connection.execute(_PENDING, of_cluster)
            else:
                wanted = {**of_cluster, "requests": _whole_requests(front)}
                found = await connection.execute(_PENDING.where(OF_REQUESTS), wanted)
            changes = [change_of(row) async for row in in_portions(map(StagedRecord._make, found))]
        return PendingChanges(changes, more=len(front) > limit)

    async def committed(self, requests: Sequence[UUID], commit: str, *, unless_refused: bool = False) -> None:
        if not requests:
            return
        states = [StagedState.STAGED] if unless_refused else list(COMMITTABLE)
        named: CommitParameters = {"requests": list(requests), "states": states}
        while True:
            async with self._database.read() as connection:
                found = await connection.execute(_TO_COMMIT, named)
                rows = [row async for row in in_portions(map(StagedRecord._make, found))]
            if not rows:
                return
            facts = await _facts_of(rows, commit)
            async with self._database.write() as connection:
                if await _record_commit(connection, await self._database.now(connection), named, facts, commit):
                    return

    async def give_way(self, changes: Sequence[StagedChange]) -> None:
        if not changes:
            return
        async with self._database.write() as connection:
            await connection.execute(_GIVE_WAY, {"sequences": [change.sequence for change in changes]})

    async def refuse(self, request: UUID, code: str, reason: str) -> None:
        waiting = (staged_changes.c.request == request) & IS_STAGED
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            first = (await connection.execute(_ASKED_BY.where(waiting).with_for_update())).first()
            if first is None:
                return
            await connection.execute(update(staged_changes).where(waiting).values(**refused_columns(code, reason)))
            cluster, actor = first
            await record(
                connection,
                at,
                cluster=cluster,
                actor=actor,
                kind=EventKind.SECRET_REFUSED,
                message=f"A change to secrets cannot be committed: {reason}",
                request=str(request),
                code=code,
            )


class SqlEndedRequests:
    """Implements ``EndedRequests``, so that rows do not gather for as long as a cluster lives."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def forget(self) -> int:
        forgotten = 0
        for _ in range(MOST_FORGET_BATCHES):
            async with self._database.write() as connection:
                before = await self._database.now(connection) - REMEMBERED
                result = await connection.execute(_forget(before))
            if not result.rowcount:
                break
            forgotten += result.rowcount
        return forgotten


def _forget(before: datetime) -> Delete:
    """Whole requests among the oldest rows that wait for nothing: half a request would be taken for another one."""
    oldest = (
        select(staged_changes.c.request, staged_changes.c.sealed_at)
        .where(staged_changes.c.state != StagedState.STAGED)
        .order_by(staged_changes.c.sequence)
        .limit(FORGET_BATCH)
        .subquery()
    )
    other = staged_changes.alias("other")
    still_needed = exists().where(
        other.c.request == staged_changes.c.request,
        or_(other.c.state == StagedState.STAGED, other.c.sealed_at > before),
    )
    due = select(oldest.c.request).where(oldest.c.sealed_at <= before)
    return delete(staged_changes).where(staged_changes.c.request.in_(due), ~still_needed)


def _whole_requests(front: Sequence[UUID]) -> list[UUID]:
    """The requests of the oldest waiting changes, without the last, which may go on; the first one always.

    The changes of a request stand beside each other.
    """
    whole = dict.fromkeys(front)
    if len(whole) > 1:
        whole.pop(front[-1])
    return list(whole)


@dataclass(frozen=True)
class _CommitFacts:
    """What is to be written of a commit; made before the transaction, in which everybody else's writes wait.

    Args:
        sequences: of the changes that it has committed.
        entered: by cluster and generation, what need not be entered again: values that were written again, or given
            up, and whole Secrets written again. A value for hardware that was left since is no such value.
        older: values of ``_SUPERSEDE``, one for each key.
    """

    sequences: Sequence[int]
    entered: Mapping[tuple[UUID, int], AbstractSet[SecretPlace]]
    older: Sequence[OlderChanges]
    told: Sequence[NewEvent]


async def _facts_of(rows: Sequence[StagedRecord], commit: CommitId) -> _CommitFacts:
    written = [row for row in rows if row.replaces is None]
    resealed = [row for row in rows if row.replaces is not None]
    told = [_event(row, commit) async for row in in_portions(written)]
    return _CommitFacts(
        sequences=[row.sequence for row in rows],
        entered=await _entered(written),
        older=await _older_than(written),
        told=told + _resealed_events(resealed, commit),
    )


async def _entered(committed: Sequence[StagedRecord]) -> Mapping[tuple[UUID, int], AbstractSet[SecretPlace]]:
    entered: dict[tuple[UUID, int], set[SecretPlace]] = {}
    async for row in in_portions(committed):
        if isinstance(place := place_of(row), SecretKey):
            places: set[SecretPlace] = {place} if row.deletes else {place, place.secret}
            entered.setdefault((row.cluster, row.generation), set()).update(places)
    return entered


async def _older_than(committed: Sequence[StagedRecord]) -> Sequence[OlderChanges]:
    """Older changes of the keys just committed must never be committed after them.

    Labels and annotations are no key: a newer change of them does not hold what an older one names.
    """
    newest = {
        (row.cluster, place): row.sequence
        async for row in in_portions(committed)
        if isinstance(place := place_of(row), SecretKey)
    }
    return [
        {
            "of_cluster": cluster,
            "of_namespace": place.namespace,
            "of_name": place.name,
            "of_key": place.key,
            "before": sequence,
        }
        for (cluster, place), sequence in newest.items()
    ]


async def _record_commit(
    connection: AsyncConnection, at: datetime, named: CommitParameters, facts: _CommitFacts, commit: CommitId
) -> bool:
    """Whether the facts still held: another attempt, or a removal, may have come in between."""
    owners = [await find_row(connection, uuid) for uuid in sorted(await connection.scalars(_CLUSTERS, named))]
    waiting = [sequence async for sequence in in_portions(await connection.scalars(_SEQUENCES, named))]
    if waiting != list(facts.sequences):
        return False
    await connection.execute(_COMMIT, {"sequences": list(facts.sequences), "by_commit": commit})
    if facts.older and await connection.scalar(_STILL_STAGED, {**named, "before": max(facts.sequences)}):
        await execute_in_portions(connection, _SUPERSEDE, facts.older)
    for owner in owners:
        if owner is not None:
            entered = facts.entered.get((owner.uuid, owner.generation), frozenset())
            await _tell(connection, at, owner, commit, entered)
    await record_all(connection, at, facts.told)
    return True


async def _tell(
    connection: AsyncConnection,
    at: datetime,
    owner: ClusterRecord,
    commit: CommitId,
    entered: AbstractSet[SecretPlace],
) -> None:
    """Whoever has committed: the workflow has to look again, and finds the commit in the row."""
    changes: ClusterChanges = {"secrets_commit": commit, "news_at": at}
    if entered & set(owner.must_reenter):
        changes["must_reenter"] = [place for place in owner.must_reenter if place not in entered]
    await update_row(connection, owner.uuid, **changes)


def _resealed_events(rows: Sequence[StagedRecord], commit: str) -> list[NewEvent]:
    """One for each commit: nobody has chosen its values, and the commit names them."""
    by_request: dict[UUID, list[StagedRecord]] = {}
    for row in rows:
        by_request.setdefault(row.request, []).append(row)
    return [
        NewEvent(
            id=event_of(request, None, of_request[0].sealed_at),
            cluster=of_request[0].cluster,
            actor=of_request[0].actor,
            kind=EventKind.SECRET_RESEALED,
            message=f"Re-sealed secret values: {len(of_request)}.",
            detail={"values": len(of_request), "fingerprint": of_request[0].fingerprint, "commit": commit},
        )
        for request, of_request in by_request.items()
    ]


def event_of(request: UUID, place: SecretPlace | None, sealed_at: datetime) -> UUID:
    """The ID of the event of one committed change; a request that was forgotten and sent again has another."""
    return uuid5(EVENT_NAMESPACE, f"{request}/{place or ''}/{sealed_at.isoformat()}")


def _event(row: StagedRecord, commit: str) -> NewEvent:
    place = place_of(row)
    if isinstance(place, SecretReference):
        return _labelled(row, place, commit)
    verb = "deleted" if row.deletes else "written"
    return NewEvent(
        id=event_of(row.request, place, row.sealed_at),
        cluster=row.cluster,
        actor=row.actor,
        kind=EventKind.SECRET_DELETED if row.deletes else EventKind.SECRET_PUT,
        message=f"The secret {place} was {verb}.",
        detail={
            "namespace": place.namespace,
            "name": place.name,
            "key": place.key,
            "fingerprint": row.fingerprint,
            "commit": commit,
        },
    )


def _labelled(row: StagedRecord, secret: SecretReference, commit: str) -> NewEvent:
    """Names the labels and annotations that changed, without their values: those do not belong in the timeline."""
    change = row.template or {}
    named = {texts: ", ".join(sorted(change.get(texts) or ())) for texts in ("labels", "annotations")}
    return NewEvent(
        id=event_of(row.request, secret, row.sealed_at),
        cluster=row.cluster,
        actor=row.actor,
        kind=EventKind.SECRET_LABELLED,
        message=f"Labels or annotations of the secret {secret} were changed.",
        detail={"namespace": secret.namespace, "name": secret.name, **named, "commit": commit},
    )
