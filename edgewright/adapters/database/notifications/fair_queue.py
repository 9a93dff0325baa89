"""Whose turn it is at the webhook: clusters take turns, however much one of them has to tell."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from uuid import UUID

from sqlalchemy import delete, func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.tables import events, notifications
from edgewright.domain.notifications import NotificationType, type_of

MOST_ALIKE = 4
"""Notifications of one type that wait for one cluster; more than that become one, the newest."""


class QueueTurns:
    """Numbers for new notifications: those of one cluster come one turn after the other.

    Args:
        now: the turn that is being served.
        last: of what waits of each cluster.
    """

    def __init__(self, now: int, last: Mapping[UUID, int]) -> None:
        self._now = now
        self._last = dict(last)

    def take(self, cluster: UUID) -> int:
        """The next turn of a cluster: the present one if nothing of it waits."""
        turn = max(self._now, self._last.get(cluster, self._now - 1) + 1)
        self._last[cluster] = turn
        return turn


async def next_turns(connection: AsyncConnection, of: Collection[UUID]) -> QueueTurns:
    """The turns of some clusters, as things are."""
    now = await connection.scalar(select(func.min(notifications.c.turn)))
    waiting = select(notifications.c.cluster, func.max(notifications.c.turn).label("last")).group_by(
        notifications.c.cluster
    )
    rows = await connection.execute(waiting.where(notifications.c.cluster.in_(of)))
    return QueueTurns(now or 0, dict(rows.all()))


async def coalesce(connection: AsyncConnection, of: Collection[UUID]) -> None:
    """Lets the newest notification stand for those before it, where too many alike wait and were not tried yet."""
    many = (
        select(notifications.c.cluster)
        .where(notifications.c.cluster.in_(of), notifications.c.attempts == 0)
        .group_by(notifications.c.cluster)
        .having(func.count() > MOST_ALIKE)
    )
    waiting = (
        select(
            notifications.c.position,
            notifications.c.cluster,
            notifications.c.coalesced,
            events.c.kind,
            events.c.detail,
        )
        .join(events, events.c.position == notifications.c.position)
        .where(notifications.c.cluster.in_(many), notifications.c.attempts == 0)
        .order_by(notifications.c.position)
    )
    alike: dict[tuple[UUID, NotificationType | None], list[tuple[int, int]]] = defaultdict(list)
    for position, cluster, coalesced, kind, detail in await connection.execute(waiting):
        alike[cluster, type_of(kind, detail)].append((position, coalesced))
    for group in alike.values():
        if len(group) <= MOST_ALIKE:
            continue
        *earlier, (newest, stands_for) = group
        total = stands_for + sum(1 + coalesced for _, coalesced in earlier)
        gone = notifications.c.position.in_([position for position, _ in earlier])
        await connection.execute(delete(notifications).where(gone))
        here = notifications.c.position == newest
        await connection.execute(update(notifications).where(here).values(coalesced=total))
