"""Counts the fleet: aggregates over narrow columns, no document is read."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import Select, case, func, select

from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.tables import IS_STAGED, clusters, notifications, resealings, staged_changes
from edgewright.adapters.database.upkeep.presence import age_of_sweep
from edgewright.domain.cluster import LeaseState, Phase
from edgewright.ports.census import LEASE_AGES, Counted

_OPEN = clusters.c.closed_at.is_(None)
_NEVER_READY = select(func.min(clusters.c.created_at)).where(
    clusters.c.phase == Phase.COMMISSIONING, clusters.c.commissioning == 1, _OPEN
)
_STAGED = select(func.count().label("changes"), func.min(staged_changes.c.sealed_at).label("oldest")).where(IS_STAGED)

_DRIFTED = select(func.count()).select_from(clusters).where(clusters.c.drift.is_not(None), _OPEN)
_NOTIFICATIONS = select(func.count().label("waiting"), func.min(notifications.c.made_at).label("oldest"))
_RESEALINGS = (
    select(func.count().label("clusters"), func.min(resealings.c.asked_at).label("oldest"))
    .join_from(clusters, resealings, clusters.c.resealing == resealings.c.id)
    .where(_OPEN, resealings.c.ended_at.is_(None))
)


class LeaseCount(NamedTuple):
    """What ``_leases`` counts of one state, in its order. ``within``: for each bound of ``LEASE_AGES``."""

    state: LeaseState
    clusters: int
    heard: int
    within: Sequence[int]


class SqlCensus:
    """Implements the port ``Census``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def count(self) -> Counted:
        """See the port."""
        async with self._database.read(long=True) as connection:
            now = await self._database.now(connection)
            phases = await connection.execute(
                select(clusters.c.phase, func.count()).where(_OPEN).group_by(clusters.c.phase)
            )
            failing = await connection.execute(
                select(clusters.c.failing, clusters.c.failing_step, func.count().label("clusters"))
                .where(clusters.c.failing.is_not(None), _OPEN)
                .group_by(clusters.c.failing, clusters.c.failing_step)
            )
            leases = [
                LeaseCount(state, number, heard, within)
                for state, number, heard, *within in await connection.execute(_leases(now))
            ]
            waiting, oldest_notification = (await connection.execute(_NOTIFICATIONS)).one()
            resealing, oldest_resealing = (await connection.execute(_RESEALINGS)).one()
            sweep = await age_of_sweep(connection, now)
            staged, oldest_staged = (await connection.execute(_STAGED)).one()
            return Counted(
                phases={Phase(phase): number for phase, number in phases},
                failing={(state, step): number for state, step, number in failing},
                leases={one.state: one.clusters for one in leases},
                lease_ages=tuple(sum(int(one.within[at]) for one in leases) for at in range(len(LEASE_AGES))),
                heard=sum(one.heard for one in leases),
                oldest_commissioning=_age(await connection.scalar(_NEVER_READY), now),
                staged=staged,
                oldest_staged=_age(oldest_staged, now),
                notifications=waiting,
                oldest_notification=_age(oldest_notification, now),
                resealings=resealing,
                oldest_resealing=_age(oldest_resealing, now),
                drifted=await connection.scalar(_DRIFTED) or 0,
                sweep_age=sweep.total_seconds() if sweep else 0.0,
            )


def _leases(now: datetime) -> Select[Any]:
    """State, clusters, those heard, and how many of them were heard within each bound."""
    within = [
        func.coalesce(func.sum(case((clusters.c.last_heard >= now - timedelta(seconds=bound), 1), else_=0)), 0)
        for bound in LEASE_AGES
    ]
    return (
        select(
            clusters.c.lease_state,
            func.count().label("clusters"),
            func.count(clusters.c.last_heard).label("heard"),
            *within,
        )
        .where(_OPEN)
        .group_by(clusters.c.lease_state)
    )


def _age(since: datetime | None, now: datetime) -> float:
    return max(0.0, (now - since).total_seconds()) if since else 0.0
