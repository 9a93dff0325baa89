"""How credentials prove themselves by being used, and how one follows another."""

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import Select, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.events.events import record
from edgewright.adapters.database.rows.access_rows import (
    UNSPENT,
    CredentialRecord,
    add_credential,
    drop_unproven,
    revoke_older,
)
from edgewright.adapters.database.rows.cluster_record import ClusterRecord
from edgewright.adapters.database.rows.cluster_rows import (
    find_row,
    open_row,
    present_row,
    raise_change,
)
from edgewright.adapters.database.rows.lease_rows import note_joined
from edgewright.adapters.database.tables import credentials, registration_tokens
from edgewright.domain.cluster import Acceptance, CredentialState, Role, TokenState
from edgewright.domain.events import EventKind
from edgewright.errors import Conflict
from edgewright.ports.edge_access import Sha256


class CredentialProof:
    """The part of ``EdgeAccess`` that credentials which are in use drive."""

    _database: Database

    async def record_use(self, credential: UUID) -> None:
        statement = select(credentials).where(credentials.c.id == credential)
        async with self._database.read() as connection:
            seen = await _read(connection, statement)
        if seen is None or seen.proven_at is not None:
            return
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            row = await find_row(connection, seen.cluster)
            used = await _read(connection, statement.with_for_update())
            if row is None or used is None or used.proven_at is not None or used.state == CredentialState.REVOKED:
                return
            state = _after_use(used.state, row)
            await connection.execute(
                update(credentials).where(credentials.c.id == credential).values(proven_at=at, state=state)
            )
            if used.token is not None:
                await connection.execute(
                    update(registration_tokens)
                    .where(registration_tokens.c.id == used.token, registration_tokens.c.state.in_(UNSPENT))
                    .values(state=TokenState.SPENT)
                )
            replaced = await revoke_older(connection, used) if state is CredentialState.ACTIVE else 0
            await raise_change(connection, row, edge_reported_at=at)
            await record(
                connection,
                at,
                cluster=row.uuid,
                actor=used.role,
                kind=EventKind.CREDENTIAL_ROTATED if replaced else EventKind.CREDENTIAL_PROVEN,
                message=f"The {used.role} credential of {row.name} was used for the first time"
                + ("; the previous one is revoked." if replaced else "."),
                role=used.role,
                generation=used.generation,
                revoked=replaced,
            )
            await note_joined(connection, at, row, actor=used.role)

    async def add_rotated(self, cluster: UUID, role: Role, secret_sha256: Sha256, *, actor: str) -> CredentialState:
        mine = (credentials.c.cluster == cluster) & (credentials.c.role == role)
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            row = await open_row(connection, cluster)
            statement = select(credentials).where(mine, credentials.c.generation == row.generation)
            newest_first = statement.order_by(credentials.c.sequence.desc())
            held = [CredentialRecord._make(one) for one in await connection.execute(newest_first)]
            for credential in held:
                if credential.secret_sha256 == secret_sha256:
                    return _known(row, credential.state)
            if not any(credential.state == CredentialState.ACTIVE for credential in held):
                raise Conflict(
                    f"{row.name} has no {role} credential that a new one could follow.",
                    code="nothing_to_rotate",
                    hint="Register again with a new registration token.",
                )
            await drop_unproven(connection, row, role, of=(CredentialState.PENDING,))
            state = CredentialState.PENDING
            await add_credential(connection, at, row, role, secret_sha256, state=state)
            await raise_change(connection, row)
            await record(
                connection,
                at,
                cluster=cluster,
                actor=actor,
                kind=EventKind.CREDENTIAL_REGISTERED,
                message=f"The edge of {row.name} handed in a new {role} credential. "
                "The current one stays valid until the new one is used.",
                role=role,
                generation=row.generation,
            )
            return state

    async def ask_rotation(
        self, cluster: UUID, roles: Collection[Role], *, actor: str, reason: str
    ) -> Sequence[Role]:
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            row = await present_row(connection, cluster)
            mine = (credentials.c.cluster == cluster) & (credentials.c.generation == row.generation)
            active = mine & (credentials.c.state == CredentialState.ACTIVE) & credentials.c.role.in_(roles)
            held = [
                CredentialRecord._make(one) for one in await connection.execute(select(credentials).where(active))
            ]
            if {credential.role for credential in held} != set(roles):
                raise _nothing_to_rotate(row.name)
            asked = sorted({one.role for one in held if one.rotation_asked_at is None})
            if asked:
                unasked = active & credentials.c.rotation_asked_at.is_(None)
                await connection.execute(update(credentials).where(unasked).values(rotation_asked_at=at))
                await raise_change(connection, row)
                await record(
                    connection,
                    at,
                    cluster=cluster,
                    actor=actor,
                    kind=EventKind.CREDENTIAL_ROTATION_ASKED,
                    message=f"The edge of {row.name} was asked for new credentials ({', '.join(asked)}). {reason}",
                    roles=", ".join(asked),
                    generation=row.generation,
                )
            return asked


async def _read(connection: AsyncConnection, of_one: Select[Any]) -> CredentialRecord | None:
    row = (await connection.execute(of_one)).one_or_none()
    return None if row is None else CredentialRecord._make(row)


def _nothing_to_rotate(name: str) -> Conflict:
    return Conflict(
        f"{name} has no active credential that a new one could follow.",
        code="nothing_to_rotate",
        hint="Attach its edge: edgewright cluster bootstrap NAME.",
    )


def _after_use(state: CredentialState, row: ClusterRecord) -> CredentialState:
    """A rotated credential becomes active by its use; one that waits for acceptance goes on waiting."""
    if state is CredentialState.PENDING and row.acceptance is Acceptance.ACCEPTED:
        return CredentialState.ACTIVE
    return state


def _known(row: ClusterRecord, state: CredentialState) -> CredentialState:
    if state is CredentialState.REVOKED:
        raise Conflict(
            f"That credential of {row.name} was revoked.", code="credential_revoked", hint="Make another one."
        )
    return state
