"""Credentials and tokens of a cluster, inside a transaction that somebody else began."""

from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import ColumnElement, bindparam, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.events.feed import take_positions
from edgewright.adapters.database.rows.cluster_record import ClusterRecord
from edgewright.adapters.database.tables import clusters, credentials, entries, projections, registration_tokens
from edgewright.domain.cluster import Acceptance, CredentialState, Desired, Role, TokenState, Workloads
from edgewright.domain.wellknown import APP_CLUSTER_STATUS

UNSPENT = (TokenState.ISSUED, TokenState.BOUND)
LIVING = (CredentialState.PENDING, CredentialState.ACTIVE, CredentialState.SUSPENDED, CredentialState.DETACH_ONLY)
WORKING = (CredentialState.PENDING, CredentialState.ACTIVE)


class CredentialRecord(NamedTuple):
    """One row of ``credentials``, in the order of its columns."""

    id: UUID
    sequence: int
    cluster: UUID
    generation: int
    role: Role
    state: CredentialState
    secret_sha256: bytes
    created_at: datetime
    proven_at: datetime | None
    token: str | None
    rotation_asked_at: datetime | None


class RegistrationTokenRecord(NamedTuple):
    """One row of ``registration_tokens``, in the order of its columns."""

    id: str
    cluster: UUID
    generation: int
    state: TokenState
    expires_at: datetime
    secret_sha256: bytes
    bound_uid: str | None


_LIVING = (
    select(credentials)
    .where(credentials.c.cluster == bindparam("of_cluster"), credentials.c.state != CredentialState.REVOKED)
    .order_by(credentials.c.sequence.desc())
)


class HeldCredential(NamedTuple):
    """A credential and what its worth depends on, in the order of ``HELD_BY``."""

    id: UUID
    generation: int
    role: Role
    state: CredentialState
    secret_sha256: bytes
    created_at: datetime
    proven_at: datetime | None
    rotation_asked_at: datetime | None
    holder_name: str
    holder_generation: int
    holder_acceptance: Acceptance


HELD_BY = (
    select(
        credentials.c.id,
        credentials.c.generation,
        credentials.c.role,
        credentials.c.state,
        credentials.c.secret_sha256,
        credentials.c.created_at,
        credentials.c.proven_at,
        credentials.c.rotation_asked_at,
        clusters.c.name.label("holder_name"),
        clusters.c.generation.label("holder_generation"),
        clusters.c.acceptance.label("holder_acceptance"),
    )
    .join_from(credentials, clusters, clusters.c.uuid == credentials.c.cluster)
    .where(credentials.c.cluster == bindparam("holder"), credentials.c.state != CredentialState.REVOKED)
    .order_by(credentials.c.sequence.desc())
)
"""Credentials of a cluster that are not revoked, newest first, each with what its worth depends on."""
HELD_WIDTH: Final = len(HeldCredential._fields)


class OrdersColumns(NamedTuple):
    """What ``ORDERS_OF`` reads behind the columns of ``HELD_BY``, in its order."""

    desired: Desired
    lease_seconds: int
    check_in: str | None
    resealing: UUID | None
    workloads: Workloads
    purge: bool | None
    closed_at: datetime | None
    order: str | None
    desired_revision: str | None
    status_etag: str | None


ORDERS_OF = (
    HELD_BY.add_columns(
        clusters.c.desired,
        clusters.c.lease_seconds,
        clusters.c.settings["check_in"].as_string().label("check_in"),
        clusters.c.resealing,
        clusters.c.workloads,
        clusters.c.purge,
        clusters.c.closed_at,
        projections.c.body["order"].as_string().label("order"),
        projections.c.body["desired_revision"].as_string().label("desired_revision"),
        entries.c.etag.label("status_etag"),
    )
    .outerjoin(projections, projections.c.cluster == clusters.c.uuid)
    .outerjoin(entries, (entries.c.object == clusters.c.uuid) & (entries.c.app == APP_CLUSTER_STATUS))
)
"""The same with what the answer to the agent depends on. The database reads settings and projection: most of them is
of no interest here, and they may be large."""


async def end_tokens(connection: AsyncConnection, cluster: UUID) -> int:
    """Unspent tokens die; returns how many."""
    mine = (registration_tokens.c.cluster == cluster) & registration_tokens.c.state.in_(UNSPENT)
    result = await connection.execute(update(registration_tokens).where(mine).values(state=TokenState.REPLACED))
    return result.rowcount


async def move_credentials(
    connection: AsyncConnection,
    cluster: UUID,
    to: CredentialState,
    *,
    of: tuple[CredentialState, ...] = LIVING,
    generation: int | None = None,
) -> int:
    """Brings the credentials that are in one of the states into another; returns how many."""
    mine = (credentials.c.cluster == cluster) & credentials.c.state.in_(of)
    if generation is not None:
        mine &= credentials.c.generation == generation
    result = await connection.execute(update(credentials).where(mine).values(state=to))
    return result.rowcount


async def let_in_again(connection: AsyncConnection, cluster: UUID, acceptance: str) -> int:
    """Suspended credentials are what they were before: pending until the cluster is accepted, then active."""
    to = CredentialState.ACTIVE if acceptance == Acceptance.ACCEPTED else CredentialState.PENDING
    return await move_credentials(connection, cluster, to, of=(CredentialState.SUSPENDED,))


async def living_credentials(
    connection: AsyncConnection, cluster: UUID, *where: ColumnElement[bool]
) -> list[CredentialRecord]:
    """Credentials of a cluster that are not revoked, newest first."""
    statement = _LIVING.where(*where) if where else _LIVING
    return [CredentialRecord._make(row) for row in await connection.execute(statement, {"of_cluster": cluster})]


async def add_credential(
    connection: AsyncConnection,
    at: datetime,
    row: ClusterRecord,
    role: Role,
    secret_sha256: bytes,
    *,
    state: CredentialState,
    token: str | None = None,
) -> None:
    """Stores a credential that nobody has used yet, for the present generation of a cluster.

    Args:
        token: the registration token that let it in; None: it follows another credential.
    """
    [sequence] = await take_positions(connection)
    await connection.execute(
        insert(credentials).values(
            id=uuid4(),
            sequence=sequence,
            cluster=row.uuid,
            generation=row.generation,
            role=role,
            state=state,
            secret_sha256=secret_sha256,
            created_at=at,
            token=token,
        )
    )


async def drop_unproven(
    connection: AsyncConnection,
    row: ClusterRecord,
    role: Role,
    *,
    of: tuple[CredentialState, ...] = WORKING,
) -> None:
    """Forgets credentials that were never used and are replaced before they ever were."""
    await connection.execute(
        delete(credentials).where(
            credentials.c.cluster == row.uuid,
            credentials.c.generation == row.generation,
            credentials.c.role == role,
            credentials.c.state.in_(of),
            credentials.c.proven_at.is_(None),
        )
    )


async def revoke_older(connection: AsyncConnection, credential: CredentialRecord) -> int:
    """A proven credential replaces all earlier ones of its role and generation; returns how many."""
    older = (
        (credentials.c.cluster == credential.cluster)
        & (credentials.c.role == credential.role)
        & (credentials.c.generation == credential.generation)
        & (credentials.c.sequence < credential.sequence)
        & (credentials.c.state != CredentialState.REVOKED)
    )
    result = await connection.execute(update(credentials).where(older).values(state=CredentialState.REVOKED))
    return result.rowcount
