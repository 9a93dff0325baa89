"""Tokens of operators, and what idempotency keys remember."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, bindparam, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.engine.errors import WRITE_CONFLICT, again_after_collision
from edgewright.adapters.database.events.events import record
from edgewright.adapters.database.events.feed import insert_if_absent
from edgewright.adapters.database.rows.cluster_rows import open_row
from edgewright.adapters.database.rows.edge_events import EdgeEvents
from edgewright.adapters.database.tables import idempotency_keys, operator_tokens
from edgewright.domain.events import EventKind
from edgewright.errors import Conflict, Invalid, Waiting
from edgewright.ports.operators import FirstAnswer, OperatorToken, Permission

REMEMBERED = timedelta(hours=24)
CLAIM_LIVES = timedelta(minutes=1)
"""After this, a claim that was not settled is taken to be of a gateway that died."""


class OperatorTokenRecord(NamedTuple):
    """One row of ``operator_tokens``, in the order of its columns."""

    id: str
    name: str
    permissions: list[str]
    secret_sha256: bytes
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None


class IdempotencyRecord(NamedTuple):
    """One row of ``idempotency_keys``, in the order of its columns."""

    scope: str
    key: str
    request_digest: str
    status: int
    claimed_at: datetime
    expires_at: datetime
    headers: dict[str, str]
    body: Any


class SqlOperatorTokens:
    """Implements ``OperatorTokens``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @again_after_collision
    async def add(self, token: OperatorToken, *, actor: str, edge: UUID | None = None) -> None:
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            await _bury_expired(connection, at, token.name)
            taken = select(operator_tokens.c.id).where(operator_tokens.c.name == token.name, _unrevoked())
            if await connection.scalar(taken) is not None:
                raise Conflict(
                    f"There is a token called {token.name}.",
                    code="token_name_taken",
                    hint="Revoke it first, or choose another name.",
                )
            await connection.execute(
                insert(operator_tokens).values(
                    id=token.id,
                    name=token.name,
                    permissions=sorted(token.permissions),
                    secret_sha256=token.secret_sha256,
                    created_at=token.created_at,
                    expires_at=token.expires_at,
                )
            )
            message = f"The token {token.name} was created."
            permissions = " ".join(sorted(token.permissions))
            if edge is None:
                await record(
                    connection,
                    at,
                    cluster=None,
                    actor=actor,
                    kind=EventKind.OPERATOR_TOKEN_CREATED,
                    message=message,
                    token=token.id,
                    name=token.name,
                    permissions=permissions,
                )
                return
            events = EdgeEvents(await open_row(connection, edge), at)
            events.note(
                EventKind.OPERATOR_TOKEN_CREATED,
                message,
                actor=actor,
                token=token.id,
                name=token.name,
                permissions=permissions,
            )
            await events.write(connection, at)

    async def find(self, token_id: str) -> OperatorToken | None:
        async with self._database.read() as connection:
            found = (await connection.execute(_BY_ID, {"token": token_id})).one_or_none()
            at = await self._database.now(connection)
        row = None if found is None else OperatorTokenRecord._make(found)
        return _token(row) if row is not None and _lives(row, at) else None

    async def list(self) -> Sequence[OperatorToken]:
        async with self._database.read() as connection:
            rows = [OperatorTokenRecord._make(row) for row in await connection.execute(_ALL)]
            at = await self._database.now(connection)
        return [_token(row) for row in rows if _lives(row, at)]

    async def revoke(self, token_id: str, *, actor: str) -> bool:
        mine = (operator_tokens.c.id == token_id) & _unrevoked()
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            statement = update(operator_tokens).where(mine).values(revoked_at=at).returning(operator_tokens.c.name)
            name = (await connection.execute(statement)).scalar_one_or_none()
            if name is None:
                return False
            await record(
                connection,
                at,
                cluster=None,
                actor=actor,
                kind=EventKind.OPERATOR_TOKEN_REVOKED,
                message=f"The token {name} was revoked.",
                token=token_id,
                name=name,
            )
            return True


def _unrevoked() -> ColumnElement[bool]:
    return operator_tokens.c.revoked_at.is_(None)


_ALL = select(operator_tokens).where(_unrevoked()).order_by(operator_tokens.c.name)
_BY_ID = _ALL.where(operator_tokens.c.id == bindparam("token"))


def _lives(row: OperatorTokenRecord, at: datetime) -> bool:
    return row.expires_at is None or row.expires_at > at


async def _bury_expired(connection: AsyncConnection, at: datetime, name: str) -> None:
    """The name of a token that has expired is free."""
    expired = (operator_tokens.c.name == name) & (operator_tokens.c.expires_at <= at) & _unrevoked()
    await connection.execute(update(operator_tokens).where(expired).values(revoked_at=at))


def _token(row: OperatorTokenRecord) -> OperatorToken:
    return OperatorToken(
        id=row.id,
        name=row.name,
        permissions=frozenset(Permission(permission) for permission in row.permissions),
        secret_sha256=row.secret_sha256,
        created_at=row.created_at,
        expires_at=row.expires_at,
    )


class SqlIdempotencyKeys:
    """Implements ``IdempotencyKeys``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def claim(self, scope: str, key: str, request_digest: str) -> FirstAnswer | None:
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            await connection.execute(delete(idempotency_keys).where(idempotency_keys.c.expires_at <= at))
            fresh = IdempotencyRecord(
                scope=scope,
                key=key,
                request_digest=request_digest,
                status=0,
                claimed_at=at,
                expires_at=at + REMEMBERED,
                headers={},
                body=None,
            )
            if await insert_if_absent(connection, idempotency_keys, [fresh._asdict()]):
                return None
            statement = select(idempotency_keys).where(_named(scope, key)).with_for_update()
            row = (await connection.execute(statement)).one_or_none()
            if row is None:
                raise Waiting(
                    "The idempotency key was released at this moment.", code=WRITE_CONFLICT, retry_after=0.1
                )
            known = IdempotencyRecord._make(row)
            if known.request_digest != request_digest:
                raise Invalid(
                    "That idempotency key was used for another request.",
                    code="idempotency_key_reused",
                    hint="Use a new key for each new request.",
                    where="Idempotency-Key",
                )
            if known.status == 0 and at - known.claimed_at > CLAIM_LIVES:
                await connection.execute(update(idempotency_keys).where(_named(scope, key)).values(claimed_at=at))
                return None
            return FirstAnswer(known.request_digest, known.status, known.body, known.headers)

    async def settle(self, scope: str, key: str, status: int, body: Any, headers: dict[str, str]) -> None:
        mine = _named(scope, key) & (idempotency_keys.c.status == 0)
        async with self._database.write() as connection:
            await connection.execute(
                update(idempotency_keys).where(mine).values(status=status, body=body, headers=headers)
            )

    async def release(self, scope: str, key: str) -> None:
        async with self._database.write() as connection:
            mine = _named(scope, key) & (idempotency_keys.c.status == 0)
            await connection.execute(delete(idempotency_keys).where(mine))

    async def orphan(self) -> None:
        unsettled = idempotency_keys.c.status == 0
        async with self._database.write() as connection:
            long_ago = await self._database.now(connection) - 2 * CLAIM_LIVES
            await connection.execute(update(idempotency_keys).where(unsettled).values(claimed_at=long_ago))


def _named(scope: str, key: str) -> ColumnElement[bool]:
    return (idempotency_keys.c.scope == scope) & (idempotency_keys.c.key == key)
