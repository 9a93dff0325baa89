"""The Config Store: versioned JSON documents, one per (Application UUID, Object UUID)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from edgewright.domain.events import EventKind
from edgewright.errors import Conflict


@dataclass(frozen=True)
class Entry:
    """One document.

    Args:
        etag: UUID of this revision, without quotes.
        position: position of this revision in the change feed.
    """

    app: UUID
    object: UUID
    body: Any
    etag: str
    position: int
    modified_at: datetime


@dataclass(frozen=True)
class Precondition:
    """Parsed ``If-Match`` and ``If-None-Match`` headers; ``"*"`` means any revision.

    Args:
        match: write only if the entry's etag is one of these; None: no such condition.
        none_match: write only if the entry's etag is none of these; None: no such condition.
    """

    match: frozenset[str] | None = None
    none_match: frozenset[str] | None = None

    def holds(self, etag: str | None) -> bool:
        """Whether it holds for an entry with that etag; None: for no entry."""
        revisions = set() if etag is None else {etag, "*"}
        if self.match is not None and not self.match & revisions:
            return False
        return self.none_match is None or not self.none_match & revisions


ALWAYS = Precondition()


@dataclass(frozen=True)
class Change:
    """One line of the change feed. ``etag`` is None for a deletion."""

    position: int
    app: UUID
    object: UUID
    etag: str | None
    at: datetime


@dataclass(frozen=True)
class Excerpt:
    """Some fields of an entry whose body is large.

    Args:
        position: place in the change feed of the write that made this revision.
        texts: one for each requested field, in that order; empty where there is no text.
    """

    object: UUID
    position: int
    modified_at: datetime
    texts: tuple[str, ...]


@dataclass(frozen=True)
class NewEntry:
    """An entry that must exist from the first start. ``klass``: class of the object, if it is new."""

    app: UUID
    object: UUID
    klass: UUID | None
    body: Any


@dataclass(frozen=True)
class DistinctAmong:
    """Requires that an entry differs from those of all other objects of a class, and limits their number."""

    klass: UUID
    most: int


@dataclass(frozen=True)
class EntryNews:
    """What the event of a write says in the place of ``entry.put`` or ``entry.deleted``.

    Args:
        message: one sentence for people; free of secrets.
        facts: for machines, beside Application, object and revision.
    """

    kind: EventKind
    message: str
    facts: Mapping[str, str] = field(default_factory=dict)


class EqualEntry(Conflict):
    """Another object of the class has an equal entry."""

    code = "equal_entry"


class TooManyEntries(Conflict):
    """The objects of the class already have as many entries as allowed."""

    code = "too_many_entries"


class ConfigStore(Protocol):
    """Entries, objects and classes. Order of position is order of visibility.

    Writes validate against the Application's JSON Schema (the entry of Application *Config schema* for it) and
    raise ``Invalid`` (code ``schema_violation``, ``where`` the JSON pointer); ``NotFound`` (code
    ``object_unknown``) for an object that was never created; ``Conflict`` (code ``wrong_class``) if the
    Application wants objects of another class; ``PreconditionFailed`` when the precondition does not hold.
    The configuration entries of clusters are written through ``ClusterWishes``, never here.
    """

    async def get(self, app: UUID, object_: UUID) -> Entry | None:
        """Returns the entry, or None."""

    async def etag(self, app: UUID, object_: UUID) -> str | None:
        """Returns the revision of the entry without reading its body; None: there is no entry."""

    async def get_each(self, places: Sequence[tuple[UUID, UUID]]) -> Sequence[Entry | None]:
        """Returns the entries for (Application, object) pairs from one consistent reading, in that order."""

    async def bodies(self, app: UUID, *, after: UUID | None, limit: int) -> Sequence[tuple[UUID, str]]:
        """Returns objects with an entry for an Application, sorted and after a given one, with their bodies.

        The bodies are JSON text. Parse them in a thread: many of them would block the event loop.
        """

    async def excerpts(self, app: UUID, fields: Sequence[str]) -> Sequence[Excerpt]:
        """Returns some fields of every entry of an Application, by object, without loading the whole bodies."""

    async def objects(self, app: UUID) -> Sequence[UUID]:
        """Returns the objects that have an entry for an Application, sorted."""

    async def entries_of(self, app: UUID, klass: UUID) -> Sequence[Entry]:
        """Returns the entries of an Application for objects that were created in a class, by position."""

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
        """Writes the whole entry. An equal body keeps the revision, writes nothing and is no event.

        ``distinct`` holds even if several callers write at once.

        Raises:
            EqualEntry: the entry would equal that of another object.
            TooManyEntries: the class already has as many entries as allowed.
        """

    async def delete(
        self,
        app: UUID,
        object_: UUID,
        *,
        actor: str,
        precondition: Precondition = ALWAYS,
        news: EntryNews | None = None,
    ) -> bool:
        """Deletes the entry; False if there was none."""

    async def create_object(self, klass: UUID, object_: UUID | None = None) -> tuple[UUID, bool]:
        """Registers an object in a class. Returns its UUID and whether it is new.

        Raises ``Conflict`` (code ``wrong_class``) if the object belongs to another class.
        """

    async def class_of(self, object_: UUID) -> UUID | None:
        """Returns the class of an object, or None if the object is unknown."""

    async def members(self, klass: UUID) -> Sequence[UUID]:
        """Returns the direct members of a class (objects created in it or added to it), sorted."""

    async def add_member(self, klass: UUID, object_: UUID) -> None:
        """Makes an object a direct member of a class; ``NotFound`` code ``object_unknown``."""

    async def remove_member(self, klass: UUID, object_: UUID) -> None:
        """Removes an added membership; does nothing if there is none."""

    async def changes(self, *, after: int, limit: int = 1000) -> Sequence[Change]:
        """Returns the change feed after a position, in order."""

    async def install(self, entries: Sequence[NewEntry]) -> int:
        """Writes each entry that does not exist yet, and returns how many. Keeps what users changed."""
