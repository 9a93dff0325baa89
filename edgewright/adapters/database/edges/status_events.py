"""What the timeline tells of edge statuses, inside the transaction that stores one."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.rows.cluster_record import ClusterRecord
from edgewright.adapters.database.rows.edge_events import EdgeEvents
from edgewright.adapters.database.tables import events as told
from edgewright.domain.edge_status import EdgeStatus
from edgewright.domain.events import EventKind
from edgewright.domain.opened_secrets import refusal_news
from edgewright.domain.status_news import STIR, status_news

_LOOKED_AT = 20
"""Newest events of a cluster in which a line on the same is looked for: the index has them at hand."""


async def tell_status(
    connection: AsyncConnection,
    at: datetime,
    row: ClusterRecord,
    before: EdgeStatus | None,
    now: EdgeStatus,
    *,
    events: EdgeEvents,
    actor: str,
) -> None:
    """Tells in one line what differs, unless a recent line speaks for all of it; what is refused and heals, apart."""
    refused, healed = refusal_news(before, now)
    if refused:
        events.note(EventKind.SECRET_EDGE_REFUSED, f"The edge of {row.name} does not open {refused}.", actor=actor)
    if healed:
        events.note(EventKind.SECRET_EDGE_HEALED, f"The edge of {row.name} no longer refuses {healed}.", actor=actor)
    news = status_news(before, now)
    if not news.facts and not (news.passing and set(news.matters) - await _spoken_for(connection, row.uuid, at)):
        return
    events.note(
        EventKind.EDGE_STATUS,
        news.sentence(row.name),
        actor=actor,
        hosts=len(now.document.get("hosts") or ()),
        passing=",".join(news.matters),
    )


async def _spoken_for(connection: AsyncConnection, cluster: UUID, at: datetime) -> set[str]:
    """The passing things that recent lines have named."""
    newest = (
        select(told.c.kind, told.c.at, told.c.detail)
        .where(told.c.cluster == cluster)
        .order_by(told.c.position.desc())
        .limit(_LOOKED_AT)
    )
    recent = [
        detail
        for kind, told_at, detail in await connection.execute(newest)
        if kind == EventKind.EDGE_STATUS and at - told_at < STIR
    ]
    return {part for detail in recent for part in str(detail.get("passing", "")).split(",")}
