"""Staged changes of secrets, inside a transaction that somebody else began."""

from uuid import UUID

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.tables import staged_changes
from edgewright.ports.secret_staging import StagedState


async def refuse_staged(connection: AsyncConnection, cluster: UUID, code: str, reason: str) -> int:
    """Ends all changes of a cluster that wait for a commit; returns how many. Their ciphertext goes."""
    waiting = (staged_changes.c.cluster == cluster) & (staged_changes.c.state == StagedState.STAGED)
    ended = {"state": StagedState.REFUSED, "refusal_code": code, "refusal": reason, "ciphertext": None}
    result = await connection.execute(update(staged_changes).where(waiting).values(**ended))
    return result.rowcount
