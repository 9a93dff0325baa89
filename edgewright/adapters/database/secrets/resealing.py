"""Re-sealings: asked for, answered piece by piece, and staged as one request.

What is gathered waits in the rows of its re-sealing, so that one commit can hold all of it. Only then does it become
staged changes, which the workflow commits as it commits all others.
"""

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID, uuid4, uuid5

from sqlalchemy import bindparam, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.events.events import record
from edgewright.adapters.database.events.feed import take_positions
from edgewright.adapters.database.rows.cluster_record import ClusterRecord
from edgewright.adapters.database.rows.cluster_rows import present_row, refuse_old, update_row
from edgewright.adapters.database.rows.resealing_rows import (
    ResealingRecord,
    add_wanted,
    forget_resealings,
    gathered_of,
    gathering,
    of,
    read_resealing,
    unreadable_of,
    wanted_of,
)
from edgewright.adapters.database.rows.staged_rows import INSERT, new_row
from edgewright.adapters.database.tables import clusters, resealing_secrets, resealings
from edgewright.domain.cluster import Desired, Resealing, ResealState
from edgewright.domain.events import EventKind
from edgewright.domain.kubernetes_names import SecretReference, StoredPlace
from edgewright.errors import Conflict
from edgewright.ports.git_server import CommitId
from edgewright.ports.resealing import Verdict, nothing_to_reseal
from edgewright.ports.secret_staging import StagedChange

MOST_SECRETS = 200
"""In one commit; a larger re-sealing is several, each of which can be reverted by itself."""
MOST_BYTES = 8 * 1024 * 1024
"""Bytes of ciphertext in one commit."""
MOST_NAMES = 20
"""In one sentence of the timeline."""

_ANSWER = (
    update(resealing_secrets)
    .where(
        resealing_secrets.c.resealing == bindparam("of_resealing"),
        resealing_secrets.c.secret == bindparam("of_secret"),
        resealing_secrets.c.state == ResealState.WANTED,
    )
    .values(
        {
            name: bindparam(f"to_{name}")
            for name in ("state", "tried_at", "waits_for", "unreadable", "size", "gathered")
        }
    )
)


class SqlResealings:
    """Implements ``Resealings``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def begin(
        self, cluster: UUID, generation: int, secrets: Collection[SecretReference], *, actor: str, reason: str
    ) -> Resealing | None:
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            row = await present_row(connection, cluster)
            refuse_old(row, generation)
            resealing = await _under_way(connection, row)
            if resealing is None and secrets:
                resealing = await _begin(connection, at, row, actor=actor, reason=reason)
            added = 0 if resealing is None else await add_wanted(connection, resealing, secrets)
            await update_row(connection, cluster, reseal_due_at=None)
            if added:
                await update_row(connection, cluster, resealing=resealing, news_at=at)
                message = f"The edge of {row.name} was asked to re-seal {_counted(added, 'Secret')}."
                await record(
                    connection,
                    at,
                    cluster=cluster,
                    actor=actor,
                    kind=EventKind.RESEAL_ASKED,
                    message=f"{message} {reason}".strip(),
                    secrets=added,
                )
            return await read_resealing(connection, resealing, row.must_reenter)

    async def wanted(self, cluster: UUID, *, limit: int) -> Sequence[StoredPlace]:
        async with self._database.read() as connection:
            found = await connection.scalar(select(clusters.c.resealing).where(clusters.c.uuid == cluster))
            return [] if found is None else await wanted_of(connection, found, limit)

    async def take(
        self,
        cluster: UUID,
        generation: int,
        fingerprint: str,
        verdicts: Sequence[Verdict],
        *,
        secrets_commit: CommitId | None = None,
    ) -> Resealing:
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            row = await present_row(connection, cluster)
            refuse_old(row, generation)
            resealing = await _under_way(connection, row)
            if resealing is None:
                raise nothing_to_reseal(row.name)
            if fingerprint != row.certificate_fingerprint:
                raise Conflict(
                    f"Another sealing certificate of {row.name} is in use.",
                    code="certificate_differs",
                    hint="Report the one that sealed-secrets has now, then re-seal for it.",
                )
            if secrets_commit not in (None, row.secrets_commit or ""):
                verdicts = [verdict for verdict in verdicts if not verdict.unreadable]
            await _answer(connection, at, resealing, fingerprint, verdicts)
            must_reenter = await _list_unreadable(connection, at, row, resealing, verdicts)
            await _stage_if_enough(connection, at, row, resealing)
            await _end_if_answered(connection, at, row, resealing)
            await update_row(connection, cluster, news_at=at)
            told = await read_resealing(connection, resealing, must_reenter)
            assert told is not None  # noqa: S101 - for the type checker: its row is locked with that of the cluster
            return told

    async def due(self) -> Sequence[UUID]:
        async with self._database.read(long=True) as connection:
            at = await self._database.now(connection)
            statement = select(clusters.c.uuid).where(
                clusters.c.reseal_due_at <= at,
                clusters.c.desired == Desired.PRESENT,
                clusters.c.closed_at.is_(None),
            )
            return list(await connection.scalars(statement))


async def _under_way(connection: AsyncConnection, row: ClusterRecord) -> UUID | None:
    mine = (resealings.c.id == row.resealing) & resealings.c.ended_at.is_(None)
    found: UUID | None = await connection.scalar(select(resealings.c.id).where(mine)) if row.resealing else None
    return found


async def _begin(connection: AsyncConnection, at: datetime, row: ClusterRecord, *, actor: str, reason: str) -> UUID:
    await forget_resealings(connection, row.uuid)
    fresh = ResealingRecord(
        id=uuid4(),
        cluster=row.uuid,
        generation=row.generation,
        part=0,
        asked_at=at,
        asked_by=actor,
        reason=reason,
        ended_at=None,
    )
    await connection.execute(insert(resealings), fresh._asdict())
    return fresh.id


async def _answer(
    connection: AsyncConnection, at: datetime, resealing: UUID, fingerprint: str, verdicts: Sequence[Verdict]
) -> None:
    """Each Secret is answered for once: what comes later, or was not asked for, changes nothing."""
    for verdict in verdicts:
        values = {key: [value.old_sha256, value.ciphertext] for key, value in verdict.values.items()}
        state = ResealState.GATHERED if values else ResealState.ANSWERED
        await connection.execute(
            _ANSWER,
            {
                "of_resealing": resealing,
                "of_secret": verdict.secret,
                "to_state": ResealState.WANTED if verdict.waits_for else state,
                "to_tried_at": at,
                "to_waits_for": verdict.waits_for,
                "to_unreadable": "" if verdict.waits_for else "\n".join(sorted(verdict.unreadable)),
                "to_size": sum(len(ciphertext) for _, ciphertext in values.values()),
                "to_gathered": json.dumps([fingerprint, values]) if values and not verdict.waits_for else None,
            },
        )


async def _list_unreadable(
    connection: AsyncConnection, at: datetime, row: ClusterRecord, resealing: UUID, verdicts: Sequence[Verdict]
) -> Collection[StoredPlace]:
    """Adds to what must be entered again what the edge could not open; returns all of it."""
    answered = {verdict.secret for verdict in verdicts}
    found = {place for place in await unreadable_of(connection, resealing) if place.secret in answered}
    new = sorted(map(str, found - set(row.must_reenter)))
    listed = sorted({*row.must_reenter, *found}, key=str)
    if new:
        await update_row(connection, row.uuid, must_reenter=listed)
        others = f" and {len(new) - MOST_NAMES} more" if len(new) > MOST_NAMES else ""
        await record(
            connection,
            at,
            cluster=row.uuid,
            actor="agent",
            kind=EventKind.RESEAL_UNREADABLE,
            message=f"No key on the edge of {row.name} opens {', '.join(new[:MOST_NAMES])}{others} any more. "
            "Enter these values again.",
            values=len(new),
        )
    return listed


async def _stage_if_enough(connection: AsyncConnection, at: datetime, row: ClusterRecord, resealing: UUID) -> None:
    never_tried, number, size = await gathering(connection, resealing)
    if not number or (never_tried and number < MOST_SECRETS and size < MOST_BYTES):
        return
    found = (await connection.execute(select(resealings).where(resealings.c.id == resealing))).one()
    asked = ResealingRecord._make(found)
    # A request of its own for each commit: by its ID, a commit is found that nobody has recorded.
    request = uuid5(resealing, str(asked.part))
    gathered = [
        (each.secret, *json.loads(each.gathered or ""))
        for each in await gathered_of(connection, resealing)
        if isinstance(each.secret, SecretReference)  # as its verdict named it
    ]
    changes = [
        StagedChange(
            request=request,
            cluster=row.uuid,
            generation=row.generation,
            place=secret.at(key),
            ciphertext=ciphertext,
            fingerprint=fingerprint,
            sealed_at=at,
            actor=asked.asked_by,
            replaces=old_sha256,
        )
        for secret, fingerprint, values in gathered
        for key, (old_sha256, ciphertext) in sorted(values.items())
    ]
    positions = await take_positions(connection, len(changes))
    placed = [replace(change, sequence=position) for change, position in zip(changes, positions, strict=True)]
    await connection.execute(INSERT, [new_row(change)._asdict() for change in placed])
    await connection.execute(
        update(resealing_secrets)
        .where(of(resealing), resealing_secrets.c.state == ResealState.GATHERED)
        .values(state=ResealState.ANSWERED, gathered=None, size=0)
    )
    await connection.execute(
        update(resealings).where(resealings.c.id == resealing).values(part=resealings.c.part + 1)
    )


async def _end_if_answered(connection: AsyncConnection, at: datetime, row: ClusterRecord, resealing: UUID) -> None:
    if await wanted_of(connection, resealing, 1):
        return
    await connection.execute(update(resealings).where(resealings.c.id == resealing).values(ended_at=at))
    lost = len(await unreadable_of(connection, resealing))
    await update_row(connection, row.uuid, resealing=resealing if lost else None)
    told = f" {_counted(lost, 'value')} must be entered again." if lost else ""
    await record(
        connection,
        at,
        cluster=row.uuid,
        actor="agent",
        kind=EventKind.RESEAL_ENDED,
        message=f"The edge of {row.name} has answered for every Secret that it was asked to re-seal.{told}",
        unreadable=lost,
    )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
