"""What edges report, and the leases that follow from it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Select, exists, select
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.config_store.entries import exchange_entry
from edgewright.adapters.database.config_store.schemas import EntrySchemas
from edgewright.adapters.database.edges.status_events import tell_status
from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.events.events import record, record_all
from edgewright.adapters.database.rows.access_rows import move_credentials
from edgewright.adapters.database.rows.applied_verbs import note_applied
from edgewright.adapters.database.rows.cluster_record import NOTHING_PROPOSED, ClusterChanges, ClusterRecord
from edgewright.adapters.database.rows.cluster_rows import (
    find_row,
    open_row,
    raise_change,
    refuse_old,
    update_row,
)
from edgewright.adapters.database.rows.edge_events import EdgeEvents
from edgewright.adapters.database.rows.heartbeat_rows import (
    RENEW,
    RenewalColumns,
    events_of,
    is_news,
    is_rendered_anew,
    said_columns,
)
from edgewright.adapters.database.rows.lease_rows import make_current, make_expired, note_joined, renewed_lease
from edgewright.adapters.database.rows.upgrade_rows import note_anchor, note_proof
from edgewright.adapters.database.tables import clusters, credentials
from edgewright.adapters.database.upkeep.presence import Presence, listens, read_presence
from edgewright.domain.cluster import CertificateFacts, CredentialState, Desired, LeaseState, Role
from edgewright.domain.conditions import KEY_AGE_LIMIT
from edgewright.domain.edge_status import read_edge_status
from edgewright.domain.ended import Purge, left_on_edge
from edgewright.domain.event_room import CERTIFICATE_COST
from edgewright.domain.events import EventKind, NewEvent
from edgewright.domain.reach import Door, Reach
from edgewright.domain.wellknown import APP_CLUSTER_STATUS
from edgewright.errors import Conflict, NotFound
from edgewright.ports.clusters import Once
from edgewright.ports.config_store import ALWAYS, Precondition
from edgewright.ports.edge_reports import Elsewhere, Heartbeat

CERTIFICATE_FIELD = "kubeseal_cert"
BATCH = 500
"""Rows that one statement names; SQLite and PostgreSQL both take far more."""


class ElsewhereColumns(NamedTuple):
    """Columns of ``clusters`` that tell where an edge reaches the centre; they are selected in this order."""

    uuid: UUID
    name: str
    last_heard: datetime | None
    centre_url: str | None
    centre_ca: str | None
    centre_problem: str | None


_ATTACHED = exists().where(
    credentials.c.cluster == clusters.c.uuid,
    credentials.c.generation == clusters.c.generation,
    credentials.c.role == Role.AGENT,
    credentials.c.state.in_([CredentialState.ACTIVE, CredentialState.PENDING]),
)


class SqlEdgeReports(Presence):
    """Implements ``EdgeReports``."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._schemas = EntrySchemas(database)

    async def write_status(
        self,
        cluster: UUID,
        body: Mapping[str, Any],
        *,
        certificate: tuple[CertificateFacts, str] | None,
        certificate_problem: str | None,
        generation: int | None,
        actor: str,
        precondition: Precondition = ALWAYS,
        proposes: bool = False,
        once: Once | None = None,
    ) -> bool:
        await self._schemas.check(APP_CLUSTER_STATUS, body)
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            row = await open_row(connection, cluster)
            if not await note_applied(connection, at, cluster, once):
                return False
            if generation is not None:
                refuse_old(row, generation)
                await make_current(connection, at, row)
                await update_row(connection, cluster, **renewed_lease(row, at))
            events = EdgeEvents(row, at, is_bounded=generation is not None)
            if proposes and certificate is not None:
                certified = await _propose_certificate(connection, at, row, certificate, actor=actor)
            else:
                reported = (certificate, certificate_problem)
                certified = await _take_certificate(connection, at, row, reported, events=events, actor=actor)
            if certificate_problem is not None or (proposes and certificate is not None):
                body = _with_certificate_in_use(body, row)
            entry, before = await exchange_entry(
                connection, at, APP_CLUSTER_STATUS, cluster, body, precondition=precondition
            )
            changed = entry is not before
            if not (changed or certified):
                return False
            if certified or row.edge_reported_at is None:
                await raise_change(connection, row, edge_reported_at=at, news_at=at)
            else:
                await update_row(connection, cluster, edge_reported_at=at, news_at=at)
            await note_joined(connection, at, row, actor=actor)
            if changed:
                was, now = read_edge_status(before.body) if before else None, read_edge_status(body)
                await tell_status(connection, at, row, was, now, events=events, actor=actor)
                await note_proof(connection, at, row, now)
                await note_anchor(connection, row, now)
            await events.write(connection, at)
            return True

    async def heartbeats(self, beats: Sequence[Heartbeat]) -> Sequence[UUID]:
        newest = {beat.cluster: beat for beat in beats}
        nudged: list[UUID] = []
        if newest:
            async with self._database.write() as connection:
                at = await self._database.now(connection)
                named = sorted(newest)
                for start in range(0, len(named), BATCH):
                    rows = await _rows_of(connection, named[start : start + BATCH])
                    living = [row for row in rows if row.generation == newest[row.uuid].generation]
                    nudged += await _renew(connection, at, [(row, newest[row.uuid]) for row in living])
        return nudged

    async def expire_leases(self) -> Sequence[UUID]:
        expired: list[UUID] = []
        while turned := await self._expire_some():
            expired += turned
        return expired

    async def elsewhere(self, door: Door) -> Sequence[Elsewhere]:
        columns = clusters.c
        there = columns.centre_url.is_not_distinct_from(door.url) & columns.centre_ca.is_not_distinct_from(
            door.ca_sha256
        )
        statement = (
            select(*(columns[name] for name in ElsewhereColumns._fields))
            .where(columns.closed_at.is_(None), columns.desired == Desired.PRESENT, _ATTACHED, ~there)
            .order_by(columns.name_key)
        )
        async with self._database.read(long=True) as connection:
            rows = [ElsewhereColumns._make(row) for row in await connection.execute(statement)]
        return [
            Elsewhere(
                row.uuid,
                row.name,
                None if row.centre_url is None else Reach(row.centre_url, row.centre_ca, row.centre_problem),
                row.last_heard,
            )
            for row in rows
        ]

    async def _expire_some(self) -> list[UUID]:
        """Not more than ``BATCH``: when a network fails, thousands are silent at once, and others want to write."""
        async with self._database.read(long=True) as connection:
            overdue = await self._overdue(connection)
            if overdue is None or (await connection.execute(overdue.limit(1))).first() is None:
                return []
        async with self._database.write() as connection:
            overdue = await self._overdue(connection)
            if overdue is None:
                return []
            found = await connection.execute(overdue.limit(BATCH).with_for_update())
            rows = [ClusterRecord._make(row) for row in found]
            await make_expired(connection, await self._database.now(connection), rows)
            return [row.uuid for row in rows]

    async def inventory_empty(self, cluster: UUID, generation: int) -> None:
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            row = await open_row(connection, cluster)
            refuse_old(row, generation)
            _refuse_staying(row)
            if row.inventory_empty_at is not None:
                return
            await raise_change(connection, row, inventory_empty_at=at)
            await record(
                connection,
                at,
                cluster=cluster,
                actor="agent",
                kind=EventKind.EDGE_INVENTORY_EMPTY,
                message=f"The edge of {row.name} reports that no workload is left.",
            )

    async def goodbye(self, cluster: UUID, generation: int, purge: Purge | None = None) -> None:
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            row = await find_row(connection, cluster)
            if row is None:
                raise NotFound(f"There is no cluster {cluster}.", code="cluster_unknown")
            refuse_old(row, generation)
            _refuse_staying(row)
            if row.closed_at is not None:
                # An edge that came back after the end of its deletion: nothing waits for it any more.
                await move_credentials(connection, cluster, CredentialState.REVOKED)
            if row.detached_at is not None:
                return
            said = Purge(asked=bool(row.purge)) if purge is None else replace(purge, asked=bool(row.purge))
            changes: ClusterChanges = {"detached_at": at}
            if said.asked:
                changes |= {"purged": said.done, "purge_problem": said.problem}
            await raise_change(connection, row, **changes)
            edge = left_on_edge(said, row.acceptance, over=True)
            if said.asked:
                kind: EventKind = EventKind.EDGE_PURGED if said.done else EventKind.EDGE_NOT_PURGED
                await record(connection, at, cluster=cluster, actor="agent", kind=kind, message=edge)
            message = f"The edge of {row.name} has detached.{'' if said.asked else f' {edge}'}".strip()
            await record(connection, at, cluster=cluster, actor="agent", kind=EventKind.EDGE_GOODBYE, message=message)

    async def now(self) -> datetime:
        async with self._database.read() as connection:
            return await self._database.now(connection)

    async def _overdue(self, connection: AsyncConnection) -> Select[Any] | None:
        """Current leases whose time has passed while a gateway was listening; None: nobody listens."""
        at = await self._database.now(connection)
        presence = await read_presence(connection)
        if presence is None or not listens(presence.listening_since, presence.listening_until, at):
            return None
        return (
            select(clusters)
            .where(clusters.c.lease_state == LeaseState.CURRENT, clusters.c.lease_expires_at < at)
            .where(clusters.c.lease_seconds < (at - presence.listening_since).total_seconds())
            .where(clusters.c.closed_at.is_(None))
            .order_by(clusters.c.uuid)
        )


async def _rows_of(connection: AsyncConnection, named: Sequence[UUID]) -> list[ClusterRecord]:
    statement = (
        select(clusters)
        .where(clusters.c.uuid.in_(named), clusters.c.closed_at.is_(None))
        .order_by(clusters.c.uuid)
        .with_for_update()
    )
    return [ClusterRecord._make(row) for row in await connection.execute(statement)]


async def _renew(
    connection: AsyncConnection, at: datetime, heard: Sequence[tuple[ClusterRecord, Heartbeat]]
) -> list[UUID]:
    """Renews the leases; returns the clusters whose workflows want to know."""
    if not heard:
        return []
    nudged: list[UUID] = []
    told: list[NewEvent] = []
    renewals: list[RenewalColumns] = []
    for row, beat in heard:
        said = said_columns(row, beat, at)
        news = is_news(row, beat, said)
        change = row.change + 1 if is_rendered_anew(row, beat, said) else row.change
        moment = at if news else row.news_at
        events = EdgeEvents(row, at)
        events.tell(events_of(row, said))
        renewals.append(
            {
                "beating": row.uuid,
                **renewed_lease(row, at),
                **said,
                **events.columns(),
                "change": change,
                "news_at": moment,
            }
        )
        told += events.told
        turned = await make_current(connection, at, row)
        if turned or news:
            nudged.append(row.uuid)
    await record_all(connection, at, told)
    await connection.execute(RENEW, renewals)
    return nudged


async def _take_certificate(
    connection: AsyncConnection,
    at: datetime,
    row: ClusterRecord,
    reported: tuple[tuple[CertificateFacts, str] | None, str | None],
    *,
    events: EdgeEvents,
    actor: str,
) -> bool:
    """Puts an accepted certificate to use, or notes why the reported one was refused; whether anything differs.

    Raises:
        TooMany: code ``edge_changes_too_often``: the edge has brought others just before.
    """
    certificate, problem = reported
    if certificate is None:
        if problem is None or problem == row.certificate_problem:
            return False
        await update_row(connection, row.uuid, certificate_problem=problem)
        message = f"{row.name} reported a sealing certificate that cannot be used. {problem}"
        events.note(EventKind.CERTIFICATE_REFUSED, message, actor=actor, problem=problem)
        return True
    facts, pem = certificate
    if facts.fingerprint == row.certificate_fingerprint:
        if row.certificate_problem is not None:
            await update_row(connection, row.uuid, certificate_problem=None)
        return row.certificate_problem is not None
    if row.certificate_fingerprint is not None:
        events.demand(CERTIFICATE_COST, "a new sealing certificate")
    changes: ClusterChanges = {
        **NOTHING_PROPOSED,
        "certificate_fingerprint": facts.fingerprint,
        "certificate_not_before": facts.not_before,
        "certificate_not_after": facts.not_after,
        "certificate_taken_at": facts.taken_at,
        "certificate_problem": None,
        "certificate_pem": pem,
        "reseal_due_at": _reseal_due(row),
    }
    await update_row(connection, row.uuid, **changes)
    await record(
        connection,
        at,
        cluster=row.uuid,
        actor=actor,
        kind=EventKind.CERTIFICATE_CHANGED,
        message=f"Secrets of {row.name} are now sealed with a different certificate.",
        fingerprint=facts.fingerprint,
        before=row.certificate_fingerprint,
        not_after=facts.not_after.isoformat(),
    )
    return True


def _with_certificate_in_use(body: Mapping[str, Any], row: ClusterRecord) -> dict[str, Any]:
    """A status whose own certificate is not taken: whoever seals with what it says must find the one in use."""
    kept = {name: value for name, value in body.items() if name != CERTIFICATE_FIELD}
    return kept if row.certificate_pem is None else {**kept, CERTIFICATE_FIELD: row.certificate_pem}


async def _propose_certificate(
    connection: AsyncConnection,
    at: datetime,
    row: ClusterRecord,
    certificate: tuple[CertificateFacts, str],
    *,
    actor: str,
) -> bool:
    """Notes a certificate that nobody has vouched for; False if it is known already."""
    facts, pem = certificate
    if facts.fingerprint in {row.proposed_fingerprint, row.certificate_fingerprint}:
        return False
    await update_row(
        connection,
        row.uuid,
        proposed_fingerprint=facts.fingerprint,
        proposed_not_after=facts.not_after,
        proposed_at=at,
        proposed_pem=pem,
    )
    await record(
        connection,
        at,
        cluster=row.uuid,
        actor=actor,
        kind=EventKind.CERTIFICATE_PROPOSED,
        message=f"A signal proposed a different sealing certificate for {row.name}. An admin must confirm it.",
        fingerprint=facts.fingerprint,
        not_after=facts.not_after.isoformat(),
    )
    return True


def _reseal_due(row: ClusterRecord) -> datetime | None:
    """When the oldest key that values may be sealed with has had its time. The key in use seals nothing old."""
    begun: datetime | None = row.certificate_not_before
    due: datetime | None = row.reseal_due_at
    return begun + KEY_AGE_LIMIT if begun is not None and due is None else due


def _refuse_staying(row: ClusterRecord) -> None:
    if row.desired != Desired.DELETED:
        raise Conflict(f"The cluster {row.name} is not being deleted.", code="not_deleting")
