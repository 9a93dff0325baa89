"""How clusters are found, shown and listed."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

from sqlalchemy import func, nulls_first, or_, select

from edgewright.adapters.database.clusters.cluster_lists import read_page
from edgewright.adapters.database.config_store.template_users import uses_template
from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.rows.cluster_rows import read_row
from edgewright.adapters.database.tables import IS_STAGED, clusters, rendered_from, staged_changes
from edgewright.domain.cluster import Desired
from edgewright.domain.names import name_key
from edgewright.domain.wellknown import APP_HELM_CHART_TEMPLATE, OBJECT_DEFAULT_CHART
from edgewright.ports.clusters import ClusterFilter, ClusterPage, ClusterRow


class SqlClusterDirectory:
    """Implements ``ClusterDirectory``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, cluster: UUID) -> ClusterRow | None:
        async with self._database.read() as connection:
            return await read_row(connection, cluster)

    async def find(self, name: str) -> UUID | None:
        statement = select(clusters.c.uuid).where(
            clusters.c.name_key == name_key(name), clusters.c.closed_at.is_(None)
        )
        async with self._database.read() as connection:
            found: UUID | None = await connection.scalar(statement)
            return found

    async def name_of(self, cluster: UUID) -> str | None:
        async with self._database.read() as connection:
            name: str | None = await connection.scalar(select(clusters.c.name).where(clusters.c.uuid == cluster))
            return name

    async def page(self, filter_: ClusterFilter) -> ClusterPage:
        return await read_page(self._database, filter_)

    async def unfinished(self, *, among: Collection[UUID] | None = None, limit: int = 10_000) -> Sequence[UUID]:
        staged = (
            select(staged_changes.c.sequence)
            .where(
                staged_changes.c.cluster == clusters.c.uuid,
                staged_changes.c.generation == clusters.c.generation,
                IS_STAGED,
                clusters.c.paused.is_(False),  # those wait for `resume`, which changes the row
            )
            .exists()
        )
        async with self._database.read(long=True) as connection:
            unread = clusters.c.news_at >= func.coalesce(clusters.c.projected_at, clusters.c.created_at)
            rendering_due = (
                (clusters.c.desired == Desired.PRESENT)
                & clusters.c.rendered_digest.is_(None)
                & clusters.c.paused.is_(False)
                & select(rendered_from.c.cluster).where(rendered_from.c.cluster == clusters.c.uuid).exists()
            )
            differs = or_(
                clusters.c.change != clusters.c.change_done,
                clusters.c.lease_epoch != clusters.c.lease_epoch_taken,
                unread,
                rendering_due,
                staged,
            )
            statement = (
                select(clusters.c.uuid)
                .where(clusters.c.closed_at.is_(None), differs)
                .order_by(nulls_first(clusters.c.projected_at.asc()), clusters.c.uuid)
                .limit(limit)
            )
            if among is not None:
                statement = statement.where(clusters.c.uuid.in_(among))
            return list(await connection.scalars(statement))

    async def underway(self) -> Sequence[UUID]:
        statement = (
            select(clusters.c.uuid)
            .where(clusters.c.underway.is_(True))  # closed ones too: somebody has to tell their end
            .order_by(clusters.c.projected_at, clusters.c.uuid)
        )
        async with self._database.read(long=True) as connection:
            return list(await connection.scalars(statement))

    async def open_clusters(self) -> Sequence[UUID]:
        statement = select(clusters.c.uuid).where(clusters.c.closed_at.is_(None)).order_by(clusters.c.uuid)
        async with self._database.read(long=True) as connection:
            return list(await connection.scalars(statement))

    async def using_template(self, app: UUID, object_: UUID) -> Sequence[UUID]:
        statement = select(clusters.c.uuid).where(uses_template(app, object_)).order_by(clusters.c.uuid)
        async with self._database.read(long=True) as connection:
            return list(await connection.scalars(statement))

    async def chart_users(self) -> Mapping[UUID, int]:
        living = clusters.c.closed_at.is_(None)
        rendered = (
            select(rendered_from.c.object, func.count())
            .join(clusters, clusters.c.uuid == rendered_from.c.cluster)
            .where(rendered_from.c.app == APP_HELM_CHART_TEMPLATE, living)
            .group_by(rendered_from.c.object)
        )
        of_cluster = select(rendered_from.c.cluster).where(rendered_from.c.cluster == clusters.c.uuid)
        named = (
            select(clusters.c.spec["chart"].as_string().label("chart")).where(living, ~of_cluster.exists()).subquery()
        )
        unrendered = select(named.c.chart, func.count()).group_by(named.c.chart)
        found = Counter[UUID]()
        async with self._database.read(long=True) as connection:
            for template, count in await connection.execute(rendered):
                found[template] += count
            for chart, count in await connection.execute(unrendered):
                found[OBJECT_DEFAULT_CHART if chart is None else UUID(chart)] += count
        return found
