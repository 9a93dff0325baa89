"""Re-sealings as rows, inside a transaction that somebody else began."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.events.events import record
from edgewright.adapters.database.tables import IS_STAGED, clusters, resealing_secrets, resealings, staged_changes
from edgewright.domain.cluster import MOST_NAMES, Resealing, ResealState
from edgewright.domain.events import EventKind
from edgewright.domain.kubernetes_names import SecretKey, SecretReference, StoredPlace

MOST_SENTENCES = 10
"""Sentences about Secrets that wait for something; the others most likely wait for the same."""


class ResealingRecord(NamedTuple):
    """One row of ``resealings``, in the order of its columns."""

    id: UUID
    cluster: UUID
    generation: int
    part: int
    asked_at: datetime
    asked_by: str
    reason: str
    ended_at: datetime | None


class ResealingSecretRecord(NamedTuple):
    """One row of ``resealing_secrets``, in the order of its columns."""

    resealing: UUID
    secret: StoredPlace
    state: ResealState
    tried_at: datetime | None
    waits_for: str
    unreadable: str
    size: int
    gathered: str | None


_NEVER_TRIED = resealing_secrets.c.tried_at.is_(None)
_WANTED = resealing_secrets.c.state == ResealState.WANTED


def of(resealing: UUID) -> Any:
    """The Secrets of a re-sealing."""
    return resealing_secrets.c.resealing == resealing


async def read_resealing(
    connection: AsyncConnection, resealing: UUID | None, must_reenter: Collection[StoredPlace]
) -> Resealing | None:
    """A re-sealing and how far it is; None for None.

    Args:
        must_reenter: what of the cluster nobody has entered again yet.
    """
    if resealing is None:
        return None
    found = (await connection.execute(select(resealings).where(resealings.c.id == resealing))).one_or_none()
    if found is None:
        return None
    row = ResealingRecord._make(found)
    counted = select(func.count(), func.count().filter(_WANTED)).where(of(resealing))
    secrets, left = (await connection.execute(counted)).one()
    missing = set(must_reenter)
    unreadable = [place for place in await unreadable_of(connection, resealing) if place in missing]
    return Resealing(
        id=row.id,
        asked_at=row.asked_at,
        asked_by=row.asked_by,
        reason=row.reason,
        secrets=secrets,
        left=left,
        unreadable=tuple(map(str, unreadable[:MOST_NAMES])),
        unreadable_count=len(unreadable),
        waiting=tuple(await _waiting(connection, resealing)) if left else (),
        ended_at=row.ended_at,
    )


async def unreadable_of(connection: AsyncConnection, resealing: UUID) -> list[SecretKey]:
    """Each value that the edge could not open."""
    named = select(resealing_secrets.c.secret, resealing_secrets.c.unreadable)
    rows = await connection.execute(
        named.where(of(resealing), resealing_secrets.c.unreadable != "").order_by(resealing_secrets.c.secret)
    )
    return [
        secret.at(key)
        for secret, unreadable in rows
        if isinstance(secret, SecretReference)  # as its verdict named it
        for key in unreadable.splitlines()
    ]


async def wanted_of(connection: AsyncConnection, resealing: UUID, limit: int) -> Sequence[StoredPlace]:
    """Secrets that the edge has not answered for; those never tried first, then those tried longest ago."""
    by_turn = (~_NEVER_TRIED, resealing_secrets.c.tried_at, resealing_secrets.c.secret)
    statement = select(resealing_secrets.c.secret).where(of(resealing), _WANTED).order_by(*by_turn).limit(limit)
    return list(await connection.scalars(statement))


async def add_wanted(connection: AsyncConnection, resealing: UUID, secrets: Collection[SecretReference]) -> int:
    """Asks for Secrets, also for those that were answered for and are stale again; returns how many are new."""
    asked = select(resealing_secrets.c.secret, resealing_secrets.c.state).where(of(resealing))
    there = dict((await connection.execute(asked)).all())
    again = [secret for secret in secrets if there.get(secret) == ResealState.ANSWERED]
    fresh = [secret for secret in sorted(set(secrets), key=str) if secret not in there]
    for secret in again:
        await connection.execute(delete(resealing_secrets).where(of(resealing), resealing_secrets.c.secret == secret))
    rows = [
        ResealingSecretRecord(
            resealing=resealing,
            secret=secret,
            state=ResealState.WANTED,
            tried_at=None,
            waits_for="",
            unreadable="",
            size=0,
            gathered=None,
        )
        for secret in (*again, *fresh)
    ]
    if rows:
        await connection.execute(resealing_secrets.insert(), [row._asdict() for row in rows])
    return len(rows)


async def forget_resealings(connection: AsyncConnection, cluster: UUID) -> None:
    """Removes all that is known of a cluster's re-sealings; their events stay."""
    mine = select(resealings.c.id).where(resealings.c.cluster == cluster)
    await connection.execute(delete(resealing_secrets).where(resealing_secrets.c.resealing.in_(mine)))
    await connection.execute(delete(resealings).where(resealings.c.cluster == cluster))


async def ask_again(connection: AsyncConnection, at: datetime, cluster: UUID) -> None:
    """Asks once more for Secrets whose new values wait for a commit that will not come, because the cluster goes.

    What goes can come back. Its repository then still holds the old values, and nothing else would say so.
    """
    lost = select(staged_changes.c.namespace, staged_changes.c.name).where(
        staged_changes.c.cluster == cluster,
        IS_STAGED,
        staged_changes.c.replaces.is_not(None),
    )
    secrets = {SecretReference(namespace, name) for namespace, name in await connection.execute(lost)}
    mine = select(resealings.c.id).where(resealings.c.cluster == cluster).order_by(resealings.c.asked_at.desc())
    newest = await connection.scalar(mine.limit(1))
    if not secrets or newest is None:
        return
    await add_wanted(connection, newest, sorted(secrets, key=str))
    await connection.execute(update(resealings).where(resealings.c.id == newest).values(ended_at=None))
    await connection.execute(update(clusters).where(clusters.c.uuid == cluster).values(resealing=newest, news_at=at))
    await record(
        connection,
        at,
        cluster=cluster,
        actor="centre",
        kind=EventKind.RESEAL_ASKED,
        message=f"New values of {len(secrets)} Secret{'' if len(secrets) == 1 else 's'} were not committed in time. "
        "The edge is asked for them again.",
        secrets=len(secrets),
    )


async def gathered_of(connection: AsyncConnection, resealing: UUID) -> list[ResealingSecretRecord]:
    """The rows that hold values to be committed."""
    gathered = resealing_secrets.c.state == ResealState.GATHERED
    statement = select(resealing_secrets).where(of(resealing), gathered).order_by(resealing_secrets.c.secret)
    return [ResealingSecretRecord._make(row) for row in await connection.execute(statement)]


async def gathering(connection: AsyncConnection, resealing: UUID) -> tuple[int, int, int]:
    """How many Secrets were never tried, how many are gathered, and the bytes of those."""
    gathered = resealing_secrets.c.state == ResealState.GATHERED
    counted = select(
        func.count().filter(_WANTED & _NEVER_TRIED),
        func.count().filter(gathered),
        func.coalesce(func.sum(resealing_secrets.c.size).filter(gathered), 0),
    )
    never, number, size = (await connection.execute(counted.where(of(resealing)))).one()
    return never, number, size


async def _waiting(connection: AsyncConnection, resealing: UUID) -> list[str]:
    late = select(resealing_secrets.c.secret, resealing_secrets.c.waits_for)
    rows = await connection.execute(
        late.where(of(resealing), _WANTED, resealing_secrets.c.waits_for != "")
        .order_by(resealing_secrets.c.secret)
        .limit(MOST_SENTENCES)
    )
    return [f"{secret}: {waits_for}" for secret, waits_for in rows]
