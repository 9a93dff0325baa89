"""What a cluster's workflow works from: one consistent reading of the row and of its credentials."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.rows.access_rows import CredentialRecord
from edgewright.adapters.database.rows.cluster_record import ClusterRecord
from edgewright.adapters.database.rows.cluster_rows import (
    LISTENING_SINCE,
    WIDTH,
    certificate_from,
    lease_from,
    proposed_from,
)
from edgewright.adapters.database.rows.heartbeat_rows import fork_sentence
from edgewright.adapters.database.rows.resealing_rows import read_resealing
from edgewright.adapters.database.tables import IS_STAGED, clusters, credentials, staged_changes
from edgewright.adapters.time_zones import timetable_of
from edgewright.domain.cluster import ClusterSettings, CredentialState, Resealing, Role, Wanted

PROOF_DUE = timedelta(minutes=15)
"""How long a rotated credential may stay unused before a condition says so."""
CLOCKS_APART = timedelta(seconds=30)
"""How much the clocks of Temporal and of the database may differ."""


_WAITING = (
    select(func.count())
    .select_from(staged_changes)
    .where(
        staged_changes.c.cluster == clusters.c.uuid,
        staged_changes.c.generation == clusters.c.generation,
        IS_STAGED,
    )
    .scalar_subquery()
)
WANTED_CLUSTER = select(clusters, LISTENING_SINCE, _WAITING.label("secrets_pending")).where(
    clusters.c.uuid == bindparam("here")
)
_OF_GENERATION = (
    select(credentials)
    .where(credentials.c.cluster == bindparam("of_cluster"), credentials.c.generation == bindparam("of_generation"))
    .order_by(credentials.c.sequence.desc())
)


class WantedColumns(NamedTuple):
    """What is read of a cluster beside its row, in the order of ``WANTED_CLUSTER``."""

    listening_since: datetime | None
    secrets_pending: int


async def read_wanted(database: Database, cluster: UUID) -> Wanted | None:
    """What ``ClusterSteps.read_wanted`` answers."""
    async with database.read() as connection:
        found = (await connection.execute(WANTED_CLUSTER, {"here": cluster})).one_or_none()
        if found is None:
            return None
        row, beside = ClusterRecord._make(found[:WIDTH]), WantedColumns._make(found[WIDTH:])
        held = await _of_generation(connection, cluster, row.generation)
        resealing = await read_resealing(connection, row.resealing, row.must_reenter)
        at = await database.now(connection)
    return _wanted(row, beside, held, at).model_copy(update={"resealing": _unfinished(resealing)})


def _unfinished(resealing: Resealing | None) -> Resealing | None:
    """None once the edge has answered for everything, and all that it could not open was entered again."""
    over = resealing is not None and resealing.ended_at is not None and not resealing.unreadable
    return None if over else resealing


async def _of_generation(connection: AsyncConnection, cluster: UUID, generation: int) -> list[CredentialRecord]:
    """Every credential that was ever registered for this hardware, revoked ones too."""
    found = await connection.execute(_OF_GENERATION, {"of_cluster": cluster, "of_generation": generation})
    return [CredentialRecord._make(row) for row in found]


def _rotation_problem(held: Sequence[CredentialRecord], at: datetime) -> str | None:
    """Why a rotation has not ended, if one should have."""
    active = {credential.role for credential in held if credential.state == CredentialState.ACTIVE}
    for credential in held:
        unproven = credential.state == CredentialState.PENDING and credential.proven_at is None
        if unproven and credential.role in active and at - credential.created_at > PROOF_DUE:
            since = credential.created_at.strftime("%Y-%m-%dT%H:%M:%SZ")
            return f"The new {credential.role} credential of {since} was never used; the one before stays valid."
    followed = {credential.role for credential in held if credential.state == CredentialState.PENDING}
    for credential in held:
        asked = _awaited_since(credential)
        if asked is not None and credential.role not in followed and at - asked > PROOF_DUE:
            since = asked.strftime("%Y-%m-%dT%H:%M:%SZ")
            return f"A new {credential.role} credential is wanted since {since}; the edge has made none so far."
    return None


def _awaited_since(credential: CredentialRecord) -> datetime | None:
    """Since when a successor of a credential in use is wanted; None: none is."""
    return credential.rotation_asked_at if credential.state == CredentialState.ACTIVE else None


def _proof_review(held: Sequence[CredentialRecord], at: datetime) -> datetime | None:
    """When ``_rotation_problem`` may have more to say, by a clock that may be a little late; None: not by time."""
    waiting = [c for c in held if c.state == CredentialState.PENDING and c.proven_at is None]
    due = [credential.created_at + PROOF_DUE for credential in waiting]
    due += [asked + PROOF_DUE for asked in map(_awaited_since, held) if asked is not None]
    return min((moment + CLOCKS_APART for moment in due if moment > at), default=None)


def _can_answer(held: Sequence[CredentialRecord]) -> bool:
    return any(c.role == Role.AGENT and c.state == CredentialState.ACTIVE for c in held)


def _wanted(row: ClusterRecord, beside: WantedColumns, held: Sequence[CredentialRecord], at: datetime) -> Wanted:
    windows = timetable_of(ClusterSettings.model_validate(row.settings))
    turn = None if windows is None else windows.next_turn(at)
    reviews = (_proof_review(held, at), None if turn is None else turn + CLOCKS_APART)
    return Wanted(
        uuid=row.uuid,
        name=row.name,
        namespace=str(row.spec.get("namespace", "")),
        generation=row.generation,
        change=row.change,
        commissioning=row.commissioning,
        desired=row.desired,
        closed=row.closed_at is not None,
        rendering_begun=row.rendered_digest is None,
        bootstrapped=bool(held),
        can_answer=_can_answer(held),
        acceptance=row.acceptance,
        short_code=row.short_code,
        edge_reported_at=row.edge_reported_at,
        lease=lease_from(row, beside.listening_since),
        certificate=certificate_from(row),
        certificate_problem=row.certificate_problem,
        certificate_proposed=proposed_from(row),
        observed_revision=row.observed_revision,
        secrets_pending=beside.secrets_pending,
        secrets_commit=row.secrets_commit,
        must_reenter=tuple(map(str, row.must_reenter)),
        paused=row.paused,
        paused_reason=row.paused_reason,
        force=row.force,
        workloads=row.workloads,
        deadline=row.deadline,
        inventory_empty_at=row.inventory_empty_at,
        detached_at=row.detached_at,
        rotation_problem=_rotation_problem(held, at),
        identity_problem=None if row.forked_at is None else fork_sentence(row.forked_at),
        window_opens_at=None if windows is None else windows.next_opening(at),
        projected_sequence=row.projection_sequence,
        unread_news=row.news_at is not None and row.news_at >= (row.projected_at or row.created_at),
        review_at=min((moment for moment in reviews if moment is not None), default=None),
        labels=row.labels,
        drift=row.drift or "",
    )
