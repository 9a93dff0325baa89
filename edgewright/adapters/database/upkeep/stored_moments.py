"""What a clock that was wrong for a while has left in the database: moments in the future, and their mending.

Every column that holds a moment is in one of the two lists, which a test checks: either a value ahead of the clock is
looked for and mended, or it does no harm, and the list says why.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Final

from sqlalchemy import Column, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.access.operators import REMEMBERED, OperatorTokenRecord
from edgewright.adapters.database.rows.applied_verbs import applied_verbs
from edgewright.adapters.database.rows.cluster_record import ClusterRecord
from edgewright.adapters.database.rows.cluster_rows import update_row
from edgewright.adapters.database.rows.lease_rows import renewed_lease
from edgewright.adapters.database.tables import (
    changes,
    clusters,
    credentials,
    entries,
    events,
    gateway_presence,
    idempotency_keys,
    last_sweep,
    notifications,
    operator_tokens,
    registration_tokens,
    resealing_secrets,
    resealings,
    staged_changes,
    upgrades,
    webhooks,
)
from edgewright.domain.conditions import KEY_AGE_LIMIT
from edgewright.domain.credentials import LONGEST_TOKEN_LIFE
from edgewright.domain.deletion import DEADLINE
from edgewright.domain.ended import LONGEST_DEADLINE
from edgewright.domain.notifications import LONGEST_REST
from edgewright.domain.upgrades import PATIENCE

AHEAD = timedelta(minutes=1)
"""A stored moment so far in the future was written by a clock that was wrong."""
NOW = timedelta(0)
_NEWEST_EVENTS: Final = 100
_OF_OPERATORS: Final = "operator tokens"


@dataclass(frozen=True)
class Stored:
    """A column that a wrong clock does harm in.

    Args:
        what: what the moments are of, in words.
        may_be: how far ahead of the clock a value may be.
        becomes: how far ahead of the clock a mended value is.
    """

    what: str
    column: Column[Any]
    may_be: timedelta = NOW
    becomes: timedelta = NOW

    def latest(self, at: datetime) -> datetime:
        """The last moment that a clock which was right may have left."""
        return at + self.may_be + AHEAD


MENDED: Final = (
    Stored("heartbeats", clusters.c.last_heard),
    Stored("publications", clusters.c.projected_at),
    Stored("reports of edges", clusters.c.news_at),
    Stored("creations", clusters.c.created_at),
    Stored("deletion deadlines", clusters.c.deadline, may_be=LONGEST_DEADLINE, becomes=DEADLINE),
    Stored("key ages", clusters.c.reseal_due_at, may_be=KEY_AGE_LIMIT),
    Stored("broken heartbeat chains", clusters.c.nonce_broken_at),
    Stored("forked identities", clusters.c.forked_at),
    Stored("registration tokens", registration_tokens.c.expires_at, may_be=LONGEST_TOKEN_LIFE),
    Stored("credentials", credentials.c.created_at),
    Stored("wishes for new credentials", credentials.c.rotation_asked_at),
    Stored(_OF_OPERATORS, operator_tokens.c.created_at),
    Stored("requests for secrets", staged_changes.c.sealed_at),
    Stored("re-sealings", resealings.c.asked_at),
    Stored("re-sealed Secrets", resealing_secrets.c.tried_at),
    Stored("the failing webhook", webhooks.c.failing_since),
    Stored("the stopped webhook", webhooks.c.stopped_at),
    Stored("the webhook's newest try", webhooks.c.last_at),
    Stored("notifications", notifications.c.made_at),
    Stored("refused notifications", notifications.c.refused_since),
    Stored("resting notifications", notifications.c.next_at, may_be=LONGEST_REST),
    Stored("idempotency keys", idempotency_keys.c.expires_at, may_be=REMEMBERED, becomes=REMEMBERED),
    Stored("unanswered idempotency keys", idempotency_keys.c.claimed_at),
    Stored("applied signals", applied_verbs.c.applied_at),
    Stored("upgrades", upgrades.c.since),
    Stored("deadlines of upgrades", upgrades.c.deadline, may_be=PATIENCE, becomes=PATIENCE),
)

_SHOWN: Final = "people are shown it; nothing is decided by it"
_WHETHER: Final = "only whether it is there counts"
_OF_CERTIFICATE: Final = "the certificate says so, and one that is not valid yet is refused"
HARMLESS: Final[Mapping[Column[Any], str]] = {
    upgrades.c.ended_at: _SHOWN,
    changes.c.at: _SHOWN,
    entries.c.modified_at: _SHOWN,
    events.c.at: "events are never changed, and ordered by their position; doctor names them",
    clusters.c.closed_at: _WHETHER,
    clusters.c.edge_reported_at: _WHETHER,
    clusters.c.deletion_begun_at: _WHETHER,
    clusters.c.inventory_empty_at: _WHETHER,
    clusters.c.detached_at: _WHETHER,
    clusters.c.lease_expires_at: "it follows from last_heard, and is mended with it; windows may put it far off",
    clusters.c.certificate_not_before: _OF_CERTIFICATE,
    clusters.c.certificate_not_after: _OF_CERTIFICATE,
    clusters.c.certificate_taken_at: _SHOWN,
    clusters.c.proposed_not_after: _OF_CERTIFICATE,
    clusters.c.proposed_at: _SHOWN,
    clusters.c.asks_flux_since: "one in the future holds nothing back",
    clusters.c.event_room_at: "the next event sets it to now, whatever it was",
    credentials.c.proven_at: _WHETHER,
    operator_tokens.c.expires_at: "it is mended with created_at; how long a token lives is its maker's choice",
    operator_tokens.c.revoked_at: _WHETHER,
    resealings.c.ended_at: _WHETHER,
    webhooks.c.created_at: _SHOWN,
    gateway_presence.c.listening_since: "whoever reads it takes a moment in the future for a gap",
    gateway_presence.c.listening_until: "whoever reads it takes a moment in the future for a gap",
    last_sweep.c.ended_at: "whoever reads it takes a round in the future for none; the next round sets it",
}


async def moments_ahead(connection: AsyncConnection, at: datetime) -> list[str]:
    """What was stored with a moment that lies in the future, in words."""
    found = [one.what for one in await _ahead(connection, at)]
    newest = select(events.c.at).order_by(events.c.position.desc()).limit(_NEWEST_EVENTS).subquery()
    others = {
        "listening gateways": select(gateway_presence.c.listening_until),
        "the sweep": select(last_sweep.c.ended_at),
        "events": select(func.max(newest.c.at)),
    }
    for what, statement in others.items():
        moment = await connection.scalar(statement)
        if moment is not None and moment > at + AHEAD:
            found.append(what)
    return found


async def mend_moments(connection: AsyncConnection, at: datetime) -> None:
    """Mends what of ``MENDED`` lies in the future. Workflows read the clusters anew that this is about."""
    for one in await _ahead(connection, at):
        late = one.column > one.latest(at)
        if one.column is clusters.c.last_heard:
            await _renew_leases(connection, at)
        elif one.column is operator_tokens.c.created_at:
            await _shorten_tokens(connection, at)
        elif one.column.table is clusters:
            anew = {clusters.c.news_at: at, one.column: at + one.becomes}
            await connection.execute(update(clusters).where(late).values(anew))
        else:
            if one.column.table is credentials:
                theirs = clusters.c.uuid.in_(select(credentials.c.cluster).where(late))
                await connection.execute(update(clusters).where(theirs).values(news_at=at))
            await connection.execute(update(one.column.table).where(late).values({one.column: at + one.becomes}))


async def _ahead(connection: AsyncConnection, at: datetime) -> list[Stored]:
    """Those of ``MENDED`` with a value in the future, each table read once."""
    found = []
    for _, of_table in groupby(MENDED, key=lambda one: one.column.table):
        columns = list(of_table)
        newest = (await connection.execute(select(*_newest(columns)))).one()
        found += [one for one, moment in zip(columns, newest, strict=True) if moment and moment > one.latest(at)]
    return found


def _newest(columns: Iterable[Stored]) -> list[Any]:
    return [func.max(one.column).label(one.column.name) for one in columns]


async def _renew_leases(connection: AsyncConnection, at: datetime) -> None:
    """Gives edges that were heard in the future one full lease from now on."""
    heard = select(clusters).where(clusters.c.last_heard > at + AHEAD).with_for_update()
    for row in [ClusterRecord._make(row) for row in await connection.execute(heard)]:
        await update_row(connection, row.uuid, **renewed_lease(row, at))


async def _shorten_tokens(connection: AsyncConnection, at: datetime) -> None:
    """Lets tokens that were made in the future live for as long as they were meant to, from now on."""
    made = select(operator_tokens).where(operator_tokens.c.created_at > at + AHEAD).with_for_update()
    for row in [OperatorTokenRecord._make(row) for row in await connection.execute(made)]:
        life = None if row.expires_at is None else row.expires_at - row.created_at
        mine = update(operator_tokens).where(operator_tokens.c.id == row.id)
        await connection.execute(mine.values(created_at=at, expires_at=None if life is None else at + life))
