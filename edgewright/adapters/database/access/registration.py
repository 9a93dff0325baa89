"""How an edge registers: a token binds to one Kubernetes cluster, and two credentials are stored."""

import secrets
from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

from sqlalchemy import or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.events.events import record
from edgewright.adapters.database.rows.access_rows import (
    UNSPENT,
    RegistrationTokenRecord,
    add_credential,
    drop_unproven,
    living_credentials,
    move_credentials,
)
from edgewright.adapters.database.rows.cluster_record import ClusterRecord
from edgewright.adapters.database.rows.cluster_rows import present_row, raise_change, refuse_doubled_identity
from edgewright.adapters.database.rows.upgrade_rows import drop_wanted
from edgewright.adapters.database.tables import clusters, credentials, registration_tokens
from edgewright.domain.cluster import Acceptance, AcceptancePolicy, CredentialState, Role, TokenState
from edgewright.domain.events import EventKind
from edgewright.errors import Conflict, Forbidden
from edgewright.ports.edge_access import Registration, Sha256

CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Base 32 without letters that are misread (https://www.crockford.com/base32.html)."""


class EdgeRegistration:
    """The part of ``EdgeAccess`` that a token opens."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def register(
        self,
        *,
        token_id: str,
        secret_sha256: Sha256,
        kube_system_uid: str,
        kubernetes_version: str,
        flux_sha256: Sha256,
        agent_sha256: Sha256,
    ) -> Registration:
        offered = {Role.FLUX: flux_sha256, Role.AGENT: agent_sha256}
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            token = await _token(connection, token_id, secret_sha256)
            row = await _registering_row(connection, token.cluster)
            known = row.short_code if _is_dead(token, at) else None
            if known is not None and await _is_repeated(connection, token, row, kube_system_uid, offered):
                return Registration(row.uuid, row.generation, row.acceptance, known)
            await _bind(connection, at, token, kube_system_uid, row.generation)
            await refuse_doubled_identity(connection, row.uuid, kube_system_uid)
            await _refuse_revoked(connection, row, offered)
            renewed = await _new_secrets(connection, row, offered)
            again = row.kube_system_uid == kube_system_uid and row.short_code is not None and not renewed
            acceptance = _acceptance(row, again=again)
            await _store(connection, at, row, token_id=token.id, renewed=renewed, acceptance=acceptance)
            # The code stands for these credentials: whoever claims the same UID with others must not be accepted
            # by the code that stands on the first one's terminal.
            short_code = row.short_code if again and row.short_code else new_short_code()
            dropped = await drop_wanted(
                connection, at, row, "A fresh bootstrap line installs what the centre has now."
            )
            if dropped:
                await raise_change(connection, row, **dropped)
            if not again or row.acceptance != acceptance:
                await raise_change(
                    connection,
                    row,
                    acceptance=acceptance,
                    short_code=short_code,
                    kube_system_uid=kube_system_uid,
                    kubernetes_version=kubernetes_version,
                )
                await record(
                    connection,
                    at,
                    cluster=row.uuid,
                    actor="edge",
                    kind=EventKind.EDGE_REGISTERED,
                    message=f"A Kubernetes cluster registered as {row.name} and is {acceptance}; "
                    f"its code is {short_code}.",
                    kube_system_uid=kube_system_uid,
                    kubernetes_version=kubernetes_version,
                    generation=row.generation,
                    token=token_id,
                )
            return Registration(row.uuid, row.generation, acceptance, short_code)


def new_short_code() -> str:
    """Eight characters in two groups, such as ``7XK2-M0QD``, for two people to compare."""
    drawn = "".join(secrets.choice(CROCKFORD) for _ in range(8))
    return f"{drawn[:4]}-{drawn[4:]}"


async def _token(connection: AsyncConnection, token_id: str, secret_sha256: Sha256) -> RegistrationTokenRecord:
    statement = select(registration_tokens).where(registration_tokens.c.id == token_id)
    row = (await connection.execute(statement)).one_or_none()
    token = None if row is None else RegistrationTokenRecord._make(row)
    if token is None or not secrets.compare_digest(token.secret_sha256, secret_sha256):
        raise Forbidden("There is no such registration token.", code="token_wrong")
    return token


def _is_dead(token: RegistrationTokenRecord, at: datetime) -> bool:
    """Whether it lets nobody in any more."""
    return token.state not in UNSPENT or token.expires_at <= at


async def _is_repeated(
    connection: AsyncConnection,
    token: RegistrationTokenRecord,
    row: ClusterRecord,
    kube_system_uid: str,
    offered: Mapping[Role, Sha256],
) -> bool:
    """Whether the edge that this token has let in offers what it lives on.

    The answer to it was lost, or the script runs twice: a refusal would make the edge undo that. One of the two may
    be of an earlier token. Whoever repeats knows both credentials already, so the token gives them nothing.
    """
    if not token.bound_uid == row.kube_system_uid == kube_system_uid:
        return False
    living = await living_credentials(connection, row.uuid, credentials.c.generation == row.generation)
    held = {(credential.role, credential.secret_sha256) for credential in living}
    return set(offered.items()) <= held


async def _registering_row(connection: AsyncConnection, cluster: UUID) -> ClusterRecord:
    closed = select(clusters.c.name).where(clusters.c.uuid == cluster, clusters.c.closed_at.is_not(None))
    name = await connection.scalar(closed)
    if name is not None:
        raise Conflict(f"The cluster {name} was deleted.", code="deleting")
    return await present_row(connection, cluster)


async def _bind(
    connection: AsyncConnection, at: datetime, token: RegistrationTokenRecord, kube_system_uid: str, generation: int
) -> None:
    """One conditional UPDATE, so that of two clusters with one token exactly one gets in."""
    mine = registration_tokens.c.id == token.id
    statement = (
        update(registration_tokens)
        .where(
            mine,
            registration_tokens.c.state.in_(UNSPENT),
            registration_tokens.c.generation == generation,
            registration_tokens.c.expires_at > at,
            or_(registration_tokens.c.bound_uid.is_(None), registration_tokens.c.bound_uid == kube_system_uid),
        )
        .values(bound_uid=kube_system_uid, state=TokenState.BOUND)
    )
    if (await connection.execute(statement)).rowcount:
        return
    found = (await connection.execute(select(registration_tokens).where(mine))).one()
    raise _refusal(RegistrationTokenRecord._make(found), at)


def _refusal(token: RegistrationTokenRecord, at: datetime) -> Forbidden:
    hint = "Ask for a new one: edgewright cluster bootstrap NAME."
    if token.state == TokenState.SPENT:
        return Forbidden("The registration token was used already.", code="token_spent", hint=hint)
    if token.state == TokenState.REPLACED:
        return Forbidden("The registration token was replaced by a newer one.", code="token_replaced", hint=hint)
    if token.state == TokenState.EXPIRED or token.expires_at <= at:
        return Forbidden("The registration token has expired.", code="token_expired", hint=hint)
    return Forbidden(
        "The registration token is bound to another Kubernetes cluster.", code="token_bound_elsewhere", hint=hint
    )


def _acceptance(row: ClusterRecord, *, again: bool) -> Acceptance:
    """What was accepted stays so. A UID is a mere claim, so new secrets are subject to the policy like anybody's.

    Args:
        again: the credentials are those that are stored, of the same UID.
    """
    if row.acceptance == Acceptance.ACCEPTED and again:
        return Acceptance.ACCEPTED
    policy = row.settings.get("accept", AcceptancePolicy.AUTO)
    return Acceptance.ACCEPTED if policy == AcceptancePolicy.AUTO else Acceptance.PENDING


async def _refuse_revoked(connection: AsyncConnection, row: ClusterRecord, offered: Mapping[Role, Sha256]) -> None:
    """Revoked is for good: whoever has it, by theft or in an old backup, is not let in by a fresh token."""
    dead = select(credentials.c.id).where(
        credentials.c.cluster == row.uuid,
        credentials.c.state == CredentialState.REVOKED,
        credentials.c.secret_sha256.in_(list(offered.values())),
    )
    if (await connection.execute(dead.limit(1))).one_or_none() is not None:
        raise Conflict(
            f"{row.name} has registered with a credential that was revoked.",
            code="credential_revoked",
            hint="Register with new ones: the bootstrap script makes them.",
        )


async def _new_secrets(
    connection: AsyncConnection, row: ClusterRecord, offered: Mapping[Role, Sha256]
) -> Mapping[Role, Sha256]:
    """Those of the offered credentials that differ from what is stored."""
    living = await living_credentials(connection, row.uuid, credentials.c.generation == row.generation)
    held = {(credential.role, credential.secret_sha256) for credential in living}
    return {role: secret for role, secret in offered.items() if (role, secret) not in held}


async def _store(
    connection: AsyncConnection,
    at: datetime,
    row: ClusterRecord,
    *,
    token_id: str,
    renewed: Mapping[Role, Sha256],
    acceptance: Acceptance,
) -> None:
    """Stores new credentials in place of those that nobody has used."""
    accepted = acceptance is Acceptance.ACCEPTED
    state = CredentialState.ACTIVE if accepted else CredentialState.PENDING
    for role in renewed:
        await drop_unproven(connection, row, role)
    for role, secret in renewed.items():
        await add_credential(connection, at, row, role, secret, state=state, token=token_id)
    if accepted and row.acceptance != acceptance:
        await move_credentials(connection, row.uuid, state, of=(CredentialState.PENDING,))
