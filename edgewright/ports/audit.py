"""What happened, for ever: the timeline of a cluster and the audit log are one table."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID

from pydantic import AwareDatetime

from edgewright.domain.events import EventKind, NewEvent
from edgewright.domain.kubernetes_names import SecretKey
from edgewright.ports.git_server import CommitId

__all__ = [
    "EVERY_EVENT",
    "LAST_POSITION",
    "AuditLog",
    "Event",
    "EventFilter",
    "EventKind",
    "NewEvent",
    "RecordedCommit",
]

LAST_POSITION = 2**63 - 1
"""No position is larger; databases count in 64 bits."""


class Event(NewEvent):
    """An event as read. ``position`` orders events and resumes streams; ``at``: when it happened."""

    position: int
    at: AwareDatetime


@dataclass(frozen=True)
class EventFilter:
    """Which events are wanted.

    Args:
        clusters: those of these clusters; empty: of all, and those of none.
        kinds: those of these kinds; empty: of every kind.
        since: those that happened then or later; None: whenever.
    """

    clusters: frozenset[UUID] = field(default_factory=frozenset)
    kinds: frozenset[EventKind] = field(default_factory=frozenset)
    since: datetime | None = None


EVERY_EVENT = EventFilter()


@dataclass(frozen=True)
class RecordedCommit:
    """One change in a repository that the timeline tells of; a commit may hold several.

    Args:
        secret: a value that it writes, or ``deletes``; None: none that has a name.
        pushed: somebody has pushed it.
    """

    commit: CommitId
    secret: SecretKey | None = None
    deletes: bool = False
    pushed: bool = False


class AuditLog(Protocol):
    """Append-only; the table itself refuses UPDATE and DELETE."""

    async def append(self, event: NewEvent) -> None:
        """Writes one event on its own; does nothing if its ID is there."""

    async def timeline(self, cluster: UUID, *, after: int = 0, limit: int = 1000) -> list[Event]:
        """Events of one cluster in order of position, also after its deletion; empty if there are none."""

    async def events(self, *, after: int, only: EventFilter = EVERY_EVENT, limit: int = 200) -> list[Event]:
        """Events behind a position that pass the filter, in order of position."""

    async def touched(self, *, after: int, limit: int = 2000) -> tuple[int, set[UUID]]:
        """Which clusters the next events behind a position tell of, and the position of the last of them."""

    async def last_position(self) -> int:
        """The newest position; 0 while there is none."""
