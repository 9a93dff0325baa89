"""Principals of clusters and what they may do."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import bindparam, delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.config_store.entries import register_object
from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.rows.cluster_rows import hold_fence
from edgewright.adapters.database.tables import accounts, grants, memberships, objects
from edgewright.domain.cluster import Fence, Role
from edgewright.domain.wellknown import CLASS_EDGE_ACCOUNT
from edgewright.ports.accounts import Account, Grant

_OF_CLUSTER = select(accounts).where(accounts.c.cluster == bindparam("of_cluster")).order_by(accounts.c.role)
_GRANTS = select(grants).where(grants.c.account.in_(bindparam("named", expanding=True)))
_INSERT, _GRANT = insert(accounts), insert(grants)


class AccountRecord(NamedTuple):
    """One row of ``accounts``, in the order of its columns."""

    uuid: UUID
    cluster: UUID
    role: Role
    name: str


class GrantRecord(NamedTuple):
    """One row of ``grants``, in the order of its columns."""

    account: UUID
    permission: UUID
    target: UUID


class SqlAccounts:
    """Implements ``Accounts``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # The parameter has the port's name; inside, it hides the table.
    async def ensure(self, fence: Fence, accounts: Sequence[Account]) -> None:
        async with self._database.write() as connection:
            await hold_fence(connection, fence)
            wanted = {account.uuid: account for account in accounts}
            held = {account.uuid: account for account in await _of_cluster(connection, fence.cluster)}
            stale = [uuid for uuid in held if held[uuid] != _sorted_grants(wanted.get(uuid))]
            await _drop(connection, stale)
            for uuid in wanted:
                await register_object(connection, CLASS_EDGE_ACCOUNT, uuid)
            await _insert(
                connection, [account for uuid, account in wanted.items() if uuid not in held or uuid in stale]
            )
            await _unregister(connection, [uuid for uuid in held if uuid not in wanted])

    async def of_cluster(self, cluster: UUID) -> Sequence[Account]:
        async with self._database.read() as connection:
            return await _of_cluster(connection, cluster)

    async def remove(self, fence: Fence) -> None:
        async with self._database.write() as connection:
            await hold_fence(connection, fence)
            held = [account.uuid for account in await _of_cluster(connection, fence.cluster)]
            await _drop(connection, held)
            await _unregister(connection, held)


def _sorted_grants(account: Account | None) -> Account | None:
    """The account as it is read back: grants in order, each once."""
    return None if account is None else account.model_copy(update={"grants": _in_order(account.grants)})


def _in_order(given: Sequence[Grant]) -> tuple[Grant, ...]:
    return tuple(sorted(set(given), key=lambda grant: (grant.permission, grant.target)))


async def _of_cluster(connection: AsyncConnection, cluster: UUID) -> list[Account]:
    rows = [AccountRecord._make(row) for row in await connection.execute(_OF_CLUSTER, {"of_cluster": cluster})]
    if not rows:
        return []
    named = {"named": [row.uuid for row in rows]}
    held = [GrantRecord._make(row) for row in await connection.execute(_GRANTS, named)]
    return [
        Account(
            uuid=row.uuid,
            cluster=row.cluster,
            role=row.role,
            name=row.name,
            grants=_in_order([_grant(grant) for grant in held if grant.account == row.uuid]),
        )
        for row in rows
    ]


def _grant(row: GrantRecord) -> Grant:
    return Grant(permission=row.permission, target=row.target)


async def _insert(connection: AsyncConnection, new: Sequence[Account]) -> None:
    if not new:
        return
    rows = [AccountRecord(one.uuid, one.cluster, one.role, one.name) for one in new]
    await connection.execute(_INSERT, [row._asdict() for row in rows])
    granted = [
        GrantRecord(account.uuid, grant.permission, grant.target)
        for account in new
        for grant in _in_order(account.grants)
    ]
    if granted:
        await connection.execute(_GRANT, [row._asdict() for row in granted])


async def _drop(connection: AsyncConnection, named: Sequence[UUID]) -> None:
    if not named:
        return
    await connection.execute(delete(grants).where(grants.c.account.in_(named)))
    await connection.execute(delete(accounts).where(accounts.c.uuid.in_(named)))


async def _unregister(connection: AsyncConnection, named: Sequence[UUID]) -> None:
    """The objects of accounts that are no more, and whatever classes they were added to."""
    if not named:
        return
    await connection.execute(delete(memberships).where(memberships.c.object.in_(named)))
    await connection.execute(delete(objects).where(objects.c.uuid.in_(named)))
