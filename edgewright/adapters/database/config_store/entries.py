"""Entries, objects and classes, inside a transaction that somebody else began."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import bindparam, delete, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from edgewright.adapters.database.events.feed import insert_if_absent, take_positions
from edgewright.adapters.database.tables import changes, entries, objects
from edgewright.domain.json import Json, same_json
from edgewright.domain.wellknown import APPLICATIONS, CLASS_NAMES, allows_class
from edgewright.errors import Conflict, NotFound, PreconditionFailed
from edgewright.ports.config_store import (
    ALWAYS,
    Change,
    DistinctAmong,
    Entry,
    EqualEntry,
    NewEntry,
    Precondition,
    TooManyEntries,
)

_READ = select(entries).where(entries.c.app == bindparam("of_app"), entries.c.object == bindparam("of_object"))
_READ_EACH = select(entries).where(
    entries.c.app.in_(bindparam("of_apps", expanding=True)),
    entries.c.object.in_(bindparam("of_objects", expanding=True)),
)
"""More than was asked for. SQLite finds pairs, `(app, object) IN (...)`, only by reading the whole table."""
_READ_AND_LOCK = _READ.with_for_update()
_OF_CLASS = select(objects.c.uuid).where(objects.c.klass == bindparam("of_class"))
_READ_OF_CLASS = select(entries).where(entries.c.app == bindparam("of_app"), entries.c.object.in_(_OF_CLASS))
_CLASS = select(objects.c.klass).where(objects.c.uuid == bindparam("of_object"))
_INSERT, _TELL = insert(entries), insert(changes)


class EntryRecord(NamedTuple):
    """One row of ``entries``, in the order of its columns."""

    app: UUID
    object: UUID
    etag: str
    position: int
    modified_at: datetime
    body: Json


def check_precondition(precondition: Precondition, entry: Entry | None) -> None:
    """Raises ``PreconditionFailed`` unless the condition holds for what is there."""
    etag = None if entry is None else entry.etag
    if not Precondition(match=precondition.match).holds(etag):
        raise PreconditionFailed(
            "The entry is not the one that If-Match names.", hint="Read it again, then change it."
        )
    if not precondition.holds(etag):
        raise PreconditionFailed(
            "The entry is there already, or is the one that If-None-Match names.",
            hint="Leave If-None-Match out to change the entry that is there.",
        )


async def read_entry(connection: AsyncConnection, app: UUID, object_: UUID, *, lock: bool = False) -> Entry | None:
    """The entry, or None. ``lock``: nobody else changes it before this transaction ends."""
    place = {"of_app": app, "of_object": object_}
    row = (await connection.execute(_READ_AND_LOCK if lock else _READ, place)).one_or_none()
    return None if row is None else _entry(EntryRecord._make(row))


async def read_entries(
    connection: AsyncConnection, places: Sequence[tuple[UUID, UUID]]
) -> Mapping[tuple[UUID, UUID], Entry]:
    """The entries that there are at some places, (Application, object) each."""
    wanted = set(places)
    named = {"of_apps": sorted({app for app, _ in wanted}), "of_objects": sorted({object_ for _, object_ in wanted})}
    rows = [EntryRecord._make(row) for row in await connection.execute(_READ_EACH, named)]
    return {(row.app, row.object): _entry(row) for row in rows if (row.app, row.object) in wanted}


async def read_entries_of(connection: AsyncConnection, app: UUID, klass: UUID) -> Sequence[Entry]:
    """The entries of an Application for the objects that were made of a class, by position."""
    found = await connection.execute(_READ_OF_CLASS, {"of_app": app, "of_class": klass})
    return sorted((_entry(EntryRecord._make(row)) for row in found), key=lambda entry: entry.position)


async def demand_distinct(connection: AsyncConnection, entry: Entry, distinct: DistinctAmong) -> None:
    """Raises unless an entry that this transaction has just written is distinct.

    With its position it holds the feed: whoever writes at the same time has committed before, or waits for it.

    Raises:
        EqualEntry: see there.
        TooManyEntries: see there.
    """
    found = await read_entries_of(connection, entry.app, distinct.klass)
    others = [each for each in found if each.object != entry.object]
    for other in others:
        if same_json(other.body, entry.body):
            raise EqualEntry(f"The object {other.object} has an equal entry.")
    if len(others) >= distinct.most:
        raise TooManyEntries(f"There are {len(others)} such entries already, and may be no more.")


def _entry(row: EntryRecord) -> Entry:
    return Entry(row.app, row.object, row.body, row.etag, row.position, row.modified_at)


async def put_entry(
    connection: AsyncConnection,
    at: datetime,
    app: UUID,
    object_: UUID,
    body: Any,
    *,
    precondition: Precondition = ALWAYS,
) -> tuple[Entry, bool]:
    """Writes an entry. Returns it and whether it differs from what was there; an equal body writes nothing."""
    entry, before = await exchange_entry(connection, at, app, object_, body, precondition=precondition)
    return entry, entry is not before


async def exchange_entry(
    connection: AsyncConnection,
    at: datetime,
    app: UUID,
    object_: UUID,
    body: Any,
    *,
    precondition: Precondition = ALWAYS,
) -> tuple[Entry, Entry | None]:
    """Writes an entry. Returns it and the one before: itself if the bodies are equal, None if there was none."""
    before = await read_entry(connection, app, object_, lock=True)
    check_precondition(precondition, before)
    if before is not None and same_json(before.body, body):
        return before, before
    return await write_entry(connection, at, app, object_, body, new=before is None), before


async def write_entry(
    connection: AsyncConnection, at: datetime, app: UUID, object_: UUID, body: Any, *, new: bool
) -> Entry:
    """Writes an entry that the caller knows to be new, or to differ from the one that is there."""
    [position] = await take_positions(connection)
    entry = Entry(app, object_, body, str(uuid4()), position, at)
    if new:
        await connection.execute(_INSERT, _record(entry)._asdict())
    else:
        here = (entries.c.app == app) & (entries.c.object == object_)
        await connection.execute(update(entries).where(here).values(**_record(entry)._asdict()))
    await _tell(connection, Change(position, app, object_, entry.etag, at))
    return entry


async def delete_entry(
    connection: AsyncConnection, at: datetime, app: UUID, object_: UUID, *, precondition: Precondition = ALWAYS
) -> bool:
    """Deletes an entry; False if there was none."""
    before = await read_entry(connection, app, object_, lock=True)
    check_precondition(precondition, before)
    if before is None:
        return False
    await connection.execute(delete(entries).where(entries.c.app == app, entries.c.object == object_))
    [position] = await take_positions(connection)
    await _tell(connection, Change(position, app, object_, None, at))
    return True


async def install_entries(connection: AsyncConnection, at: datetime, new: Sequence[NewEntry]) -> int:
    """Writes the entries that are not there yet, and registers their objects; returns how many were written."""
    there = set(await connection.execute(select(entries.c.app, entries.c.object)))
    known = set(await connection.scalars(select(objects.c.uuid)))
    klasses = {entry.object: entry.klass for entry in new if entry.klass is not None and entry.object not in known}
    if klasses:
        await connection.execute(insert(objects), [{"uuid": uuid, "klass": klass} for uuid, klass in klasses.items()])
    missing = {(entry.app, entry.object): entry.body for entry in new if (entry.app, entry.object) not in there}
    if not missing:
        return 0
    positions = await take_positions(connection, len(missing))
    written = [
        Entry(app, object_, body, str(uuid4()), position, at)
        for ((app, object_), body), position in zip(missing.items(), positions, strict=True)
    ]
    await connection.execute(insert(entries), [_record(entry)._asdict() for entry in written])
    told = [Change(entry.position, entry.app, entry.object, entry.etag, at) for entry in written]
    await connection.execute(insert(changes), [asdict(change) for change in told])
    return len(written)


def _record(entry: Entry) -> EntryRecord:
    return EntryRecord(entry.app, entry.object, entry.etag, entry.position, entry.modified_at, entry.body)


async def _tell(connection: AsyncConnection, change: Change) -> None:
    await connection.execute(_TELL, asdict(change))


async def class_of(connection: AsyncConnection, object_: UUID) -> UUID | None:
    """The class of an object, or None if the object is unknown."""
    found: UUID | None = await connection.scalar(_CLASS, {"of_object": object_})
    return found


async def register_object(connection: AsyncConnection, klass: UUID, object_: UUID) -> bool:
    """Registers an object of a class; False if it is known.

    Raises:
        Conflict: code ``wrong_class``, known with another class.
    """
    if await insert_if_absent(connection, objects, [{"uuid": object_, "klass": klass}]):
        return True
    known = await class_of(connection, object_)
    if known != klass:
        raise Conflict(f"The object {object_} is of {_named(known)}, not of {_named(klass)}.", code="wrong_class")
    return False


async def check_object(connection: AsyncConnection, app: UUID, object_: UUID) -> None:
    """Raises unless the object may have an entry of the Application.

    Raises:
        NotFound: code ``object_unknown``.
        Conflict: code ``wrong_class``.
    """
    klass = await class_of(connection, object_)
    if klass is None:
        raise NotFound(
            f"There is no object {object_}.", code="object_unknown", hint="Create it with POST /v1/object."
        )
    if not allows_class(app, klass):
        name = APPLICATIONS[app].name
        raise Conflict(f"{name} is not for objects of {_named(klass)}.", code="wrong_class")


def _named(klass: UUID | None) -> str:
    return f"class {CLASS_NAMES.get(klass, str(klass))}" if klass is not None else "no class"
