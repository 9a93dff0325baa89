"""How an edge gets in: tokens, registration, acceptance, and the end of all of it."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.access.credential_proof import CredentialProof
from edgewright.adapters.database.access.registration import EdgeRegistration
from edgewright.adapters.database.events.events import record
from edgewright.adapters.database.rows.access_rows import (
    HELD_BY,
    HELD_WIDTH,
    LIVING,
    ORDERS_OF,
    UNSPENT,
    WORKING,
    CredentialRecord,
    HeldCredential,
    OrdersColumns,
    RegistrationTokenRecord,
    end_tokens,
    let_in_again,
    living_credentials,
    move_credentials,
    revoke_older,
)
from edgewright.adapters.database.rows.cluster_record import ClusterRecord
from edgewright.adapters.database.rows.cluster_rows import (
    hold_fence,
    open_row,
    present_row,
    raise_change,
    read_row_for_edge,
)
from edgewright.adapters.database.rows.setup_status import says_ready
from edgewright.adapters.database.tables import registration_tokens
from edgewright.domain.check_in import CheckIn
from edgewright.domain.cluster import (
    Acceptance,
    CredentialState,
    Fence,
    Order,
    TokenState,
)
from edgewright.domain.events import EventKind
from edgewright.errors import Conflict
from edgewright.ports.clusters import ClusterRow
from edgewright.ports.edge_access import Credential, EdgeOrders, Holder, RegistrationToken, Sha256


class SqlEdgeAccess(EdgeRegistration, CredentialProof):
    """Implements ``EdgeAccess``. Made with the ``Database``, as its first side is."""

    async def issue_token(
        self, cluster: UUID, *, token_id: str, secret_sha256: Sha256, expires_in: timedelta, actor: str
    ) -> datetime:
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            row = await present_row(connection, cluster)
            if not (row.ready or await says_ready(connection, row)):
                raise Conflict(
                    f"The cluster {row.name} is not commissioned yet.",
                    code="not_ready",
                    hint="Wait until it is ready; `cluster show` says what it waits for.",
                )
            await end_tokens(connection, cluster)
            await connection.execute(
                insert(registration_tokens).values(
                    id=token_id,
                    cluster=cluster,
                    generation=row.generation,
                    state=TokenState.ISSUED,
                    expires_at=at + expires_in,
                    secret_sha256=secret_sha256,
                )
            )
            await record(
                connection,
                at,
                cluster=cluster,
                actor=actor,
                kind=EventKind.TOKEN_ISSUED,
                message=f"A registration token for {row.name} was issued.",
                token=token_id,
                generation=row.generation,
                expires_at=(at + expires_in).isoformat(),
            )
            return at + expires_in

    async def token(self, token_id: str) -> RegistrationToken | None:
        async with self._database.read() as connection:
            statement = select(registration_tokens).where(registration_tokens.c.id == token_id)
            found = (await connection.execute(statement)).one_or_none()
            if found is None:
                return None
            at = await self._database.now(connection)
        row = RegistrationTokenRecord._make(found)
        is_late = row.state in UNSPENT and row.expires_at <= at
        return RegistrationToken(
            id=row.id,
            cluster=row.cluster,
            generation=row.generation,
            state=TokenState.EXPIRED if is_late else row.state,
            expires_at=row.expires_at,
            secret_sha256=row.secret_sha256,
            bound_uid=row.bound_uid,
        )

    async def expire_tokens(self) -> int:
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            late = registration_tokens.c.state.in_(UNSPENT) & (registration_tokens.c.expires_at <= at)
            result = await connection.execute(
                update(registration_tokens).where(late).values(state=TokenState.EXPIRED)
            )
            return result.rowcount

    async def answer(self, cluster: UUID, *, accepted: bool, actor: str) -> Acceptance:
        wanted = Acceptance.ACCEPTED if accepted else Acceptance.REJECTED
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            row = await present_row(connection, cluster)
            if row.acceptance == wanted:
                return wanted
            if row.acceptance in {Acceptance.NONE, Acceptance.REJECTED}:
                raise Conflict(
                    f"Nobody has registered as {row.name}.",
                    code="nothing_to_accept",
                    hint="Run the bootstrap line on the edge cluster first.",
                )
            if accepted:
                await raise_change(connection, row, acceptance=wanted)
                await move_credentials(connection, cluster, CredentialState.ACTIVE, of=(CredentialState.PENDING,))
                for credential in await living_credentials(connection, cluster):
                    if credential.proven_at is not None:
                        await revoke_older(connection, credential)
            else:
                await raise_change(connection, row, acceptance=wanted, kube_system_uid=None, short_code=None)
                await move_credentials(connection, cluster, CredentialState.REVOKED)
                await end_tokens(connection, cluster)
            await record(
                connection,
                at,
                cluster=cluster,
                actor=actor,
                kind=EventKind.EDGE_ACCEPTED if accepted else EventKind.EDGE_REJECTED,
                message=f"The Kubernetes cluster that registered as {row.name} was {wanted}.",
                short_code=row.short_code,
                kube_system_uid=row.kube_system_uid,
                generation=row.generation,
            )
            return wanted

    async def credentials(self, cluster: UUID) -> Sequence[Credential]:
        async with self._database.read() as connection:
            return _credentials(await living_credentials(connection, cluster), cluster)

    async def with_credentials(self, cluster: UUID) -> tuple[ClusterRow, Sequence[Credential]] | None:
        async with self._database.read() as connection:
            row = await read_row_for_edge(connection, cluster)
            held = await living_credentials(connection, cluster)
        return None if row is None else (row, _credentials(held, cluster))

    async def holder(self, cluster: UUID) -> Holder | None:
        rows = await self._database.look_up(HELD_BY, {"holder": cluster})
        if not rows:
            return None
        held = [HeldCredential._make(row) for row in rows]
        of = held[0]
        return Holder(of.holder_name, of.holder_generation, of.holder_acceptance, _credentials(held, cluster))

    async def orders(self, cluster: UUID) -> EdgeOrders | None:
        rows = await self._database.look_up(ORDERS_OF, {"holder": cluster})
        if not rows:
            return None
        held = [HeldCredential._make(row[:HELD_WIDTH]) for row in rows]
        holder, of = held[0], OrdersColumns._make(rows[0][HELD_WIDTH:])
        return EdgeOrders(
            name=holder.holder_name,
            generation=holder.holder_generation,
            acceptance=holder.holder_acceptance,
            credentials=_credentials(held, cluster),
            desired=of.desired,
            order=Order(of.order or Order.NONE),
            desired_revision=of.desired_revision,
            lease_seconds=of.lease_seconds,
            check_in=None if of.check_in is None else CheckIn.model_validate_json(of.check_in),
            status_etag=of.status_etag,
            resealing=of.resealing,
            workloads=of.workloads,
            purge=bool(of.purge),
            closed=of.closed_at is not None,
        )

    async def revoke(self, cluster: UUID, *, actor: str) -> int:
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            row = await open_row(connection, cluster)
            tokens = await end_tokens(connection, cluster)
            revoked = await move_credentials(connection, cluster, CredentialState.REVOKED)
            if tokens or revoked:
                await raise_change(connection, row)
                await record(
                    connection,
                    at,
                    cluster=cluster,
                    actor=actor,
                    kind=EventKind.CREDENTIAL_REVOKED,
                    message=f"All credentials of {row.name} were revoked.",
                    credentials=revoked,
                    tokens=tokens,
                )
            return revoked

    async def suspend(self, fence: Fence) -> None:
        async with self._database.write() as connection:
            row = await hold_fence(connection, fence)
            await end_tokens(connection, row.uuid)
            moved = await move_credentials(connection, row.uuid, CredentialState.SUSPENDED, of=WORKING)
            await self._tell(connection, row, EventKind.CREDENTIAL_SUSPENDED, "were suspended", moved)

    async def resume(self, fence: Fence) -> None:
        async with self._database.write() as connection:
            row = await hold_fence(connection, fence)
            moved = await let_in_again(connection, row.uuid, row.acceptance)
            await self._tell(connection, row, EventKind.CREDENTIAL_RESUMED, "are valid again", moved)

    async def retire(self, fence: Fence, *, said_goodbye: bool) -> None:
        to = CredentialState.REVOKED if said_goodbye else CredentialState.DETACH_ONLY
        of = tuple(state for state in LIVING if state is not to)
        words = "were revoked" if said_goodbye else "can now only be used to detach, in case the edge comes back"
        async with self._database.write() as connection:
            row = await hold_fence(connection, fence)
            await end_tokens(connection, row.uuid)
            moved = await move_credentials(connection, row.uuid, to, of=of)
            await self._tell(connection, row, EventKind.CREDENTIAL_RETIRED, words, moved)

    async def _tell(
        self, connection: AsyncConnection, row: ClusterRecord, kind: EventKind, words: str, moved: int
    ) -> None:
        """Tells of credentials that a step of the workflow has moved, if there were any."""
        if moved:
            await record(
                connection,
                await self._database.now(connection),
                cluster=row.uuid,
                actor="centre",
                kind=kind,
                message=f"The credentials of {row.name} {words}.",
                credentials=moved,
                generation=row.generation,
            )


def _credentials(rows: Sequence[CredentialRecord | HeldCredential], cluster: UUID) -> Sequence[Credential]:
    return [
        Credential(
            id=row.id,
            cluster=cluster,
            generation=row.generation,
            role=row.role,
            state=row.state,
            secret_sha256=row.secret_sha256,
            created_at=row.created_at,
            proven_at=row.proven_at,
            rotation_asked_at=row.rotation_asked_at,
        )
        for row in rows
    ]
