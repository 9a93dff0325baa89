"""Rows of ``clusters``: finding and locking them, changing them, and reading them into types."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final, NamedTuple, TypedDict, Unpack
from uuid import UUID

from sqlalchemy import Update, bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.rows.cluster_record import ClusterChanges, ClusterRecord
from edgewright.adapters.database.rows.purge_rows import left_at_end, purge_from
from edgewright.adapters.database.tables import (
    ACTIVE_IDENTITY,
    clusters,
    credentials,
    entries,
    gateway_presence,
    projections,
)
from edgewright.domain.cluster import (
    CertificateFacts,
    ClusterSettings,
    ClusterSpec,
    CredentialState,
    Desired,
    Fence,
    Lease,
    Order,
    ProposedCertificate,
    Role,
)
from edgewright.domain.edge_status import read_edge_status
from edgewright.domain.ended import cluster_deleted
from edgewright.domain.json import JsonObject
from edgewright.domain.projection import Projection
from edgewright.domain.reach import Reach
from edgewright.domain.upgrades import WantedComponents
from edgewright.domain.wellknown import APP_CLUSTER_CONFIGURATION, APP_CLUSTER_STATUS
from edgewright.errors import Conflict, NotFound, Superseded
from edgewright.ports.clusters import ClusterRow

# Statements that are run all the time are made once: SQLAlchemy takes longer to make one than SQLite to run it.
_LOCKED = select(clusters).where(clusters.c.uuid == bindparam("here")).with_for_update()
_HELD = select(clusters).where(
    clusters.c.uuid == bindparam("here"),
    clusters.c.generation == bindparam("held_generation"),
    clusters.c.change == bindparam("held_change"),
)
_HELD_AND_LOCKED = _HELD.with_for_update()


async def find_row(connection: AsyncConnection, cluster: UUID) -> ClusterRecord | None:
    """The row, locked for this transaction; None for a UUID that was never a cluster."""
    return record_from((await connection.execute(_LOCKED, {"here": cluster})).one_or_none())


def record_from(row: Sequence[Any] | None) -> ClusterRecord | None:
    """A row of ``clusters`` as a type."""
    return None if row is None else ClusterRecord._make(row)


async def open_row(connection: AsyncConnection, cluster: UUID) -> ClusterRecord:
    """The row of a cluster whose deletion has not finished, locked.

    Raises:
        NotFound: code ``cluster_unknown``.
        Gone: code ``cluster_deleted``.
    """
    row = await find_row(connection, cluster)
    if row is None:
        raise NotFound(f"There is no cluster {cluster}.", code="cluster_unknown")
    refuse_deleted(row)
    return row


def refuse_deleted(row: ClusterRecord) -> None:
    """Raises ``Gone``, code ``cluster_deleted``, once the deletion has finished."""
    if row.closed_at is not None:
        raise cluster_deleted(row.uuid, row.name, row.closed_at, edge=left_at_end(row))


async def staying_row(connection: AsyncConnection, cluster: UUID) -> ClusterRecord:
    """The row of a cluster that no deletion is under way for, locked.

    Raises:
        NotFound: code ``cluster_unknown``.
        Conflict: code ``deleting``.
    """
    row = await open_row(connection, cluster)
    refuse_while_deleting(row)
    return row


def refuse_old(row: ClusterRecord, generation: int) -> None:
    """Lets no edge of earlier hardware pass.

    Raises:
        Superseded: the cluster has another generation by now.
    """
    if row.generation != generation:
        raise Superseded(f"{row.name} lives on other hardware now.", hint="This edge is not part of it any more.")


async def present_row(connection: AsyncConnection, cluster: UUID) -> ClusterRecord:
    """The row of a cluster that is neither removed nor being deleted, locked.

    Raises:
        NotFound: code ``cluster_unknown``.
        Conflict: code ``deleting`` or ``removed``.
    """
    row = await staying_row(connection, cluster)
    if row.desired == Desired.REMOVED:
        raise Conflict(
            f"The cluster {row.name} is removed.",
            code="removed",
            hint="Write its configuration entry again to recreate it.",
        )
    return row


def refuse_while_deleting(row: ClusterRecord) -> None:
    """Raises ``Conflict``, code ``deleting``, for a cluster that is being deleted."""
    if row.desired == Desired.DELETED:
        raise Conflict(
            f"The cluster {row.name} is being deleted.",
            code="deleting",
            hint="Take the deletion back with undelete while that is possible, or wait for its end.",
        )


async def hold_fence(connection: AsyncConnection, fence: Fence, *, lock: bool = True) -> ClusterRecord:
    """The row, locked, if it still has the generation and change of the fence.

    Args:
        lock: False in a transaction that only reads.

    Raises:
        Superseded: it has moved on; the caller must change nothing.
    """
    held = {"here": fence.cluster, "held_generation": fence.generation, "held_change": fence.change}
    row = record_from((await connection.execute(_HELD_AND_LOCKED if lock else _HELD, held)).one_or_none())
    if row is None:
        raise Superseded(f"The cluster has moved on since generation/change {fence.trailer()}.")
    return row


async def update_row(connection: AsyncConnection, cluster: UUID, **values: Unpack[ClusterChanges]) -> None:
    """Changes columns that say what was seen or done, not what is wanted."""
    await connection.execute(_change_of(tuple(values)), {"here": cluster, **_to(values)})


async def raise_change(connection: AsyncConnection, row: ClusterRecord, **values: Unpack[ClusterChanges]) -> None:
    """Changes columns and raises ``change``: older fences are refused, and the sweep tells the workflow."""
    await connection.execute(_change_of(tuple(values), raising=True), {"here": row.uuid, **_to(values)})


@cache
def _change_of(columns: tuple[str, ...], *, raising: bool = False) -> Update:
    """The statement that changes some columns of one row."""
    values: dict[str, Any] = {name: bindparam(f"to_{name}", type_=clusters.c[name].type) for name in columns}
    if raising:
        values["change"] = clusters.c.change + 1
    return update(clusters).where(clusters.c.uuid == bindparam("here")).values(values)


def _to(values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"to_{name}": value for name, value in values.items()}


async def refuse_doubled_identity(connection: AsyncConnection, cluster: UUID, kube_system_uid: str | None) -> None:
    """Raises ``Conflict``, code ``duplicate_identity``, if another active cluster has that UID."""
    if kube_system_uid is None:
        return
    statement = select(clusters.c.name).where(
        clusters.c.kube_system_uid == kube_system_uid, clusters.c.uuid != cluster, ACTIVE_IDENTITY
    )
    holder = await connection.scalar(statement)
    if holder is not None:
        raise Conflict(
            f"That Kubernetes cluster is registered as {holder}.",
            code="duplicate_identity",
            hint=f"Delete or reject {holder} first, or bootstrap another Kubernetes cluster.",
        )


# --- reading -----------------------------------------------------------------------------------------------

_configuration = entries.alias("configuration")
_status = entries.alias("status")
LISTENING_SINCE = (
    select(gateway_presence.c.listening_since)
    .where(gateway_presence.c.id == 1)
    .scalar_subquery()
    .label("listening_since")
)
"""Since when a gateway listens, which a lease depends on; null: none ever has."""
WIDTH: Final = len(ClusterRecord._fields)
"""Where, in a row that was read with ``clusters`` in front, the columns of other tables begin."""


class PublishedBody(TypedDict, total=False):
    """What is looked at in a stored projection that is not read as a whole."""

    order: str
    desired_revision: str | None


class JoinedColumns(NamedTuple):
    """What is read of a cluster beside its row, in the order of ``WHOLE_CLUSTER``. Defaults: what may be left out."""

    projection: PublishedBody | None
    spec_etag: str | None
    status_etag: str | None
    listening_since: datetime | None
    edge_status: JsonObject | None = None
    can_answer: bool | None = None


CLUSTER_FOR_EDGE = (
    select(
        clusters,
        projections.c.body.label("projection"),
        _configuration.c.etag.label("spec_etag"),
        _status.c.etag.label("status_etag"),
        LISTENING_SINCE,
    )
    .select_from(
        clusters.outerjoin(projections, projections.c.cluster == clusters.c.uuid)
        .outerjoin(
            _configuration,
            (_configuration.c.object == clusters.c.uuid) & (_configuration.c.app == APP_CLUSTER_CONFIGURATION),
        )
        .outerjoin(_status, (_status.c.object == clusters.c.uuid) & (_status.c.app == APP_CLUSTER_STATUS))
    )
    .where(clusters.c.uuid == bindparam("here"))
)
_OF_HARDWARE = (credentials.c.cluster == clusters.c.uuid) & (credentials.c.generation == clusters.c.generation)
_OF_AGENT = (credentials.c.role == Role.AGENT) & (credentials.c.state == CredentialState.ACTIVE)
_CAN_ANSWER = select(credentials.c.id).where(_OF_HARDWARE, _OF_AGENT).exists()
WHOLE_CLUSTER = CLUSTER_FOR_EDGE.add_columns(_status.c.body.label("edge_status"), _CAN_ANSWER.label("can_answer"))


async def read_row(connection: AsyncConnection, cluster: UUID) -> ClusterRow | None:
    """Everything of one cluster; None for a UUID that was never a cluster."""
    row = (await connection.execute(WHOLE_CLUSTER, {"here": cluster})).one_or_none()
    if row is None:
        return None
    record, joined = _parts_of(row)
    projection = None if joined.projection is None else Projection.model_validate(joined.projection)
    return _cluster_row(record, joined, projection=projection)


async def read_row_for_edge(connection: AsyncConnection, cluster: UUID) -> ClusterRow | None:
    """``read_row``, but for ``edge_status`` and ``projection``: 10,000 edges that wait each keep what was read."""
    row = (await connection.execute(CLUSTER_FOR_EDGE, {"here": cluster})).one_or_none()
    return None if row is None else _cluster_row(*_parts_of(row), projection=None)


async def must_read_row(connection: AsyncConnection, cluster: UUID) -> ClusterRow:
    """``read_row`` of a cluster that this transaction has just written."""
    row = await read_row(connection, cluster)
    if row is None:
        raise NotFound(f"There is no cluster {cluster}.", code="cluster_unknown")
    return row


def _parts_of(row: Sequence[Any]) -> tuple[ClusterRecord, JoinedColumns]:
    return ClusterRecord._make(row[:WIDTH]), JoinedColumns(*row[WIDTH:])


def _cluster_row(row: ClusterRecord, joined: JoinedColumns, *, projection: Projection | None) -> ClusterRow:
    published: PublishedBody = joined.projection or {}
    return ClusterRow(
        uuid=row.uuid,
        generation=row.generation,
        change=row.change,
        commissioning=row.commissioning,
        desired=row.desired,
        closed=row.closed_at is not None,
        spec=ClusterSpec.model_validate(row.spec),
        spec_etag=joined.spec_etag,
        settings=ClusterSettings.model_validate(row.settings),
        created_at=row.created_at,
        created_by=row.created_by,
        acceptance=row.acceptance,
        short_code=row.short_code,
        paused=row.paused,
        paused_reason=row.paused_reason,
        projection=projection,
        projected_at=row.projected_at,
        order=Order(published.get("order", Order.NONE)),
        desired_revision=published.get("desired_revision"),
        lease=lease_from(row, joined.listening_since),
        certificate=certificate_from(row),
        certificate_pem=row.certificate_pem,
        proposed=proposed_from(row),
        proposed_pem=row.proposed_pem,
        edge_status=None if joined.edge_status is None else read_edge_status(joined.edge_status),
        status_etag=joined.status_etag,
        observed_revision=row.observed_revision,
        must_reenter=tuple(row.must_reenter),
        resealing=row.resealing,
        force=row.force,
        workloads=row.workloads,
        deadline=row.deadline,
        reach=None if row.centre_url is None else Reach(row.centre_url, row.centre_ca, row.centre_problem),
        proven_url=row.proven_url,
        asks_flux=bool(row.asks_flux),
        closed_at=row.closed_at,
        purge=purge_from(row),
        can_answer=joined.can_answer,
        drift=row.drift or "",
        secrets_commit=row.secrets_commit or "",
        rendered_commit=row.rendered_commit or "",
        rendered_digest=row.rendered_digest,
        wanted=wanted_from(row),
        upgrading=row.upgrading,
        anchor=row.anchor,
    )


def lease_from(row: ClusterRecord, listening_since: datetime | None) -> Lease:
    """The lease of a row that was read together with ``LISTENING_SINCE``."""
    expires_at = row.lease_expires_at
    if expires_at is not None:
        since = listening_since or datetime.min.replace(tzinfo=UTC)
        expires_at = max(expires_at, since + timedelta(seconds=row.lease_seconds))
    return Lease(
        state=row.lease_state,
        epoch=row.lease_epoch,
        last_heard=row.last_heard,
        expires_at=expires_at,
        clock_offset_seconds=row.clock_offset,
    )


def wanted_from(row: ClusterRecord) -> WantedComponents:
    """The versions that the cluster is to have."""
    return WantedComponents.model_validate(row.components or {})


def certificate_from(row: ClusterRecord) -> CertificateFacts | None:
    """The sealing certificate in use, or None. All of its columns are written at once."""
    if row.certificate_fingerprint is None:
        return None
    assert row.certificate_not_before and row.certificate_not_after and row.certificate_taken_at  # noqa: S101 - see above
    return CertificateFacts(
        fingerprint=row.certificate_fingerprint,
        not_before=row.certificate_not_before,
        not_after=row.certificate_not_after,
        taken_at=row.certificate_taken_at,
    )


def proposed_from(row: ClusterRecord) -> ProposedCertificate | None:
    """The sealing certificate that a signal proposed, or None. All of its columns are written at once."""
    if row.proposed_fingerprint is None:
        return None
    assert row.proposed_not_after and row.proposed_at  # noqa: S101 - see above
    return ProposedCertificate(
        fingerprint=row.proposed_fingerprint, not_after=row.proposed_not_after, proposed_at=row.proposed_at
    )
