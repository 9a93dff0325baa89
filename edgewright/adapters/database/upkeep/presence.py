"""Who is there: gateways that listen, and the sweep."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.tables import gateway_presence, last_sweep
from edgewright.adapters.database.upkeep.stored_moments import AHEAD, mend_moments, moments_ahead

LISTENING_GAP = timedelta(seconds=15)
"""A gateway that said so longer ago does not listen any more; one that says so from the future never did."""

_HERE = select(gateway_presence)
_HERE_AND_LOCKED = _HERE.with_for_update()


class PresenceRecord(NamedTuple):
    """The row of ``gateway_presence``, in the order of its columns."""

    id: int
    listening_since: datetime
    listening_until: datetime


class Presence:
    """The part of ``EdgeReports`` that silence is judged by."""

    _database: Database

    async def keep_listening(self) -> None:
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            presence = await read_presence(connection, lock=True)
            if presence is None:
                await connection.execute(
                    insert(gateway_presence).values(id=1, listening_since=at, listening_until=at)
                )
                return
            gap = not listens(presence.listening_since, presence.listening_until, at)
            since = at if gap else presence.listening_since
            until = at if gap else max(at, presence.listening_until)
            await connection.execute(update(gateway_presence).values(listening_since=since, listening_until=until))

    async def sweep_ended(self) -> None:
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            if not (await connection.execute(update(last_sweep).values(ended_at=at))).rowcount:
                await connection.execute(insert(last_sweep).values(id=1, ended_at=at))

    async def sweep_age(self) -> timedelta | None:
        async with self._database.read() as connection:
            return await age_of_sweep(connection, await self._database.now(connection))

    async def mend_future(self) -> Sequence[str]:
        async with self._database.read(long=True) as connection:
            if not await moments_ahead(connection, await self._database.now(connection)):
                return []
        async with self._database.write(long=True) as connection:
            at = await self._database.now(connection)
            found = await moments_ahead(connection, at)
            await mend_moments(connection, at)
            return found


def listens(since: datetime, until: datetime, at: datetime) -> bool:
    """Whether a gateway listens now that said so then."""
    return abs(at - until) <= LISTENING_GAP and since <= at + LISTENING_GAP


async def read_presence(connection: AsyncConnection, *, lock: bool = False) -> PresenceRecord | None:
    """Since when and until when a gateway has listened; None: none ever has."""
    row = (await connection.execute(_HERE_AND_LOCKED if lock else _HERE)).one_or_none()
    return None if row is None else PresenceRecord._make(row)


async def age_of_sweep(connection: AsyncConnection, at: datetime) -> timedelta | None:
    """For how long the sweep might have run and has not; None: nobody can tell, because no gateway has listened."""
    presence = await read_presence(connection)
    if presence is None or presence.listening_since > at + AHEAD:
        return None
    swept = await connection.scalar(select(last_sweep.c.ended_at))
    begun: datetime = (
        presence.listening_since if swept is None or swept > at + AHEAD else max(swept, presence.listening_since)
    )
    # Of a centre that is stopped the sweep is, too: that is no defect.
    until = at if listens(presence.listening_since, presence.listening_until, at) else presence.listening_until
    return max(timedelta(0), min(at, until) - begun)
