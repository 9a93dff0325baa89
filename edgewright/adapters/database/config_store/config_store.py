"""The Config Store."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Text, cast, delete, select, union
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.config_store.entries import (
    check_object,
    class_of,
    delete_entry,
    demand_distinct,
    exchange_entry,
    install_entries,
    read_entries,
    read_entries_of,
    read_entry,
    register_object,
)
from edgewright.adapters.database.config_store.schemas import EntrySchemas
from edgewright.adapters.database.config_store.template_users import note_changed_template
from edgewright.adapters.database.engine.engine import Database
from edgewright.adapters.database.engine.errors import again_after_collision
from edgewright.adapters.database.events.events import Fact, record
from edgewright.adapters.database.events.feed import insert_if_absent
from edgewright.adapters.database.tables import changes, clusters, entries, memberships, objects
from edgewright.domain.configuration_news import changed_parts, names_of, sentence_of
from edgewright.domain.events import EventKind
from edgewright.domain.json import same_json
from edgewright.domain.wellknown import APP_CLUSTER_CONFIGURATION, APP_CLUSTER_SETTINGS, APPLICATIONS, RENDERED_APPS
from edgewright.errors import NotFound, Refused
from edgewright.ports.config_store import (
    ALWAYS,
    Change,
    DistinctAmong,
    Entry,
    EntryNews,
    Excerpt,
    NewEntry,
    Precondition,
)

OF_THE_REGISTRY = frozenset({APP_CLUSTER_CONFIGURATION, APP_CLUSTER_SETTINGS})
"""Applications whose entries change a cluster; only ``ClusterWishes`` and ``ClusterSteps`` write them."""


class SqlConfigStore:
    """Implements ``ConfigStore``."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._schemas = EntrySchemas(database)

    async def get(self, app: UUID, object_: UUID) -> Entry | None:
        async with self._database.read() as connection:
            return await read_entry(connection, app, object_)

    async def etag(self, app: UUID, object_: UUID) -> str | None:
        mine = (entries.c.app == app) & (entries.c.object == object_)
        async with self._database.read() as connection:
            found: str | None = await connection.scalar(select(entries.c.etag).where(mine))
        return found

    async def get_each(self, places: Sequence[tuple[UUID, UUID]]) -> Sequence[Entry | None]:
        async with self._database.read() as connection:
            found = await read_entries(connection, places)
        return [found.get(place) for place in places]

    async def objects(self, app: UUID) -> Sequence[UUID]:
        async with self._database.read(long=True) as connection:
            return sorted(await connection.scalars(select(entries.c.object).where(entries.c.app == app)))

    async def excerpts(self, app: UUID, fields: Sequence[str]) -> Sequence[Excerpt]:
        texts = [entries.c.body[field].as_string() for field in fields]
        mine = [entries.c.object, entries.c.position, entries.c.modified_at]
        wanted = select(*mine, *texts).where(entries.c.app == app)
        async with self._database.read(long=True) as connection:
            rows: Iterable[Sequence[Any]] = await connection.execute(wanted.order_by(entries.c.object))
            return [
                Excerpt(object_, position, modified_at, tuple(text or "" for text in found))
                for object_, position, modified_at, *found in rows
            ]

    async def entries_of(self, app: UUID, klass: UUID) -> Sequence[Entry]:
        async with self._database.read() as connection:
            return await read_entries_of(connection, app, klass)

    async def bodies(self, app: UUID, *, after: UUID | None, limit: int) -> Sequence[tuple[UUID, str]]:
        mine = select(entries.c.object, cast(entries.c.body, Text).label("body")).where(entries.c.app == app)
        if after is not None:
            mine = mine.where(entries.c.object > after)
        async with self._database.read(long=True) as connection:
            rows = await connection.execute(mine.order_by(entries.c.object).limit(limit))
            return [(object_, body) for object_, body in rows]

    @again_after_collision
    async def put(
        self,
        app: UUID,
        object_: UUID,
        body: Any,
        *,
        actor: str,
        precondition: Precondition = ALWAYS,
        distinct: DistinctAmong | None = None,
        news: EntryNews | None = None,
    ) -> Entry:
        _refuse_registry(app)
        await self._schemas.check(app, body)
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            await check_object(connection, app, object_)
            if app in RENDERED_APPS:
                present = await read_entry(connection, app, object_)
                if present is None or not same_json(present.body, body):
                    await note_changed_template(connection, at, app, object_)
            entry, before = await exchange_entry(connection, at, app, object_, body, precondition=precondition)
            if entry is not before:
                if distinct is not None:
                    await demand_distinct(connection, entry, distinct)
                what = f"The entry of {_named(app)} for {object_}"
                parts = () if before is None else changed_parts(before.body, body)
                sentence = sentence_of(what, parts) if parts else f"{what} was written."
                told = news or EntryNews(EventKind.ENTRY_PUT, sentence)
                facts: dict[str, Fact] = {"etag": entry.etag, "fields": names_of(parts), "changed": len(parts)}
                await _tell(connection, at, app, object_, actor=actor, news=told, facts=facts)
            return entry

    async def delete(
        self,
        app: UUID,
        object_: UUID,
        *,
        actor: str,
        precondition: Precondition = ALWAYS,
        news: EntryNews | None = None,
    ) -> bool:
        _refuse_registry(app)
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            return await delete_and_tell(
                connection, at, app, object_, actor=actor, precondition=precondition, news=news
            )

    async def create_object(self, klass: UUID, object_: UUID | None = None) -> tuple[UUID, bool]:
        wanted = object_ or uuid4()
        async with self._database.write() as connection:
            return wanted, await register_object(connection, klass, wanted)

    async def class_of(self, object_: UUID) -> UUID | None:
        async with self._database.read() as connection:
            return await class_of(connection, object_)

    async def members(self, klass: UUID) -> Sequence[UUID]:
        created = select(objects.c.uuid).where(objects.c.klass == klass)
        added = select(memberships.c.object).where(memberships.c.klass == klass)
        async with self._database.read(long=True) as connection:
            return sorted(await connection.scalars(union(created, added)))

    async def add_member(self, klass: UUID, object_: UUID) -> None:
        async with self._database.write() as connection:
            if await class_of(connection, object_) is None:
                raise NotFound(f"There is no object {object_}.", code="object_unknown")
            await insert_if_absent(connection, memberships, [{"klass": klass, "object": object_}])

    async def remove_member(self, klass: UUID, object_: UUID) -> None:
        here = (memberships.c.klass == klass) & (memberships.c.object == object_)
        async with self._database.write() as connection:
            await connection.execute(delete(memberships).where(here))

    async def changes(self, *, after: int, limit: int = 1000) -> Sequence[Change]:
        wanted = select(changes).where(changes.c.position > after).order_by(changes.c.position).limit(limit)
        async with self._database.read(long=True) as connection:
            rows: Iterable[Sequence[Any]] = await connection.execute(wanted)
            return [Change(*row) for row in rows]

    @again_after_collision
    async def install(self, entries: Sequence[NewEntry]) -> int:
        async with self._database.write() as connection:
            at = await self._database.now(connection)
            written = await install_entries(connection, at, entries)
            if written:
                await record(
                    connection,
                    at,
                    cluster=None,
                    actor="centre",
                    kind=EventKind.ENTRIES_INSTALLED,
                    message=f"Default entries written: {written}.",
                    entries=written,
                )
            return written


async def delete_and_tell(
    connection: AsyncConnection,
    at: datetime,
    app: UUID,
    object_: UUID,
    *,
    actor: str,
    precondition: Precondition = ALWAYS,
    news: EntryNews | None = None,
) -> bool:
    """Deletes an entry, with its event; False if there was none."""
    if app in RENDERED_APPS:
        await note_changed_template(connection, at, app, object_)
    deleted = await delete_entry(connection, at, app, object_, precondition=precondition)
    if deleted:
        sentence = f"The entry of {_named(app)} for {object_} was deleted."
        told = news or EntryNews(EventKind.ENTRY_DELETED, sentence)
        await _tell(connection, at, app, object_, actor=actor, news=told, facts={})
    return deleted


def _refuse_registry(app: UUID) -> None:
    if app in OF_THE_REGISTRY:
        raise Refused(f"{_named(app)} is written through the registry of clusters.", code="use_clusters")


def _named(app: UUID) -> str:
    application = APPLICATIONS.get(app)
    return application.name if application else f"Application {app}"


async def _tell(
    connection: AsyncConnection,
    at: datetime,
    app: UUID,
    object_: UUID,
    *,
    actor: str,
    news: EntryNews,
    facts: Mapping[str, Fact],
) -> None:
    cluster = await _cluster_of(connection, object_)
    detail: dict[str, Fact] = {"app": str(app), "object": str(object_), **facts, **news.facts}
    await record(
        connection, at, cluster=cluster, actor=actor, kind=news.kind, message=news.message, event=None, **detail
    )


async def _cluster_of(connection: AsyncConnection, object_: UUID) -> UUID | None:
    """The object itself if it is a cluster, so that its timeline tells of the entry."""
    found: UUID | None = await connection.scalar(select(clusters.c.uuid).where(clusters.c.uuid == object_))
    return found
