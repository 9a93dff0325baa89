"""The permanent record of events: the timeline of a cluster and the audit log are one table."""

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
"""The largest position: databases count in 64 bits."""


class Event(NewEvent):
    """A recorded event. ``position`` orders events and resumes streams; ``at``: when it happened."""

    position: int
    at: AwareDatetime


@dataclass(frozen=True)
class EventFilter:
    """Selects events.

    Args:
        clusters: only events of these clusters; empty: all events, including those of no cluster.
        kinds: only events of these kinds; empty: every kind.
        since: only events at this time or later; None: any time.
    """

    clusters: frozenset[UUID] = field(default_factory=frozenset)
    kinds: frozenset[EventKind] = field(default_factory=frozenset)
    since: datetime | None = None


EVERY_EVENT = EventFilter()


@dataclass(frozen=True)
class RecordedCommit:
    """One change in a repository, according to the timeline; a commit may hold several.

    Args:
        secret: the value that it writes, or ``deletes``; None: it names no value.
        pushed: somebody pushed it.
    """

    commit: CommitId
    secret: SecretKey | None = None
    deletes: bool = False
    pushed: bool = False


class AuditLog(Protocol):
    """Append-only; the table itself refuses UPDATE and DELETE."""

    async def append(self, event: NewEvent) -> None:
        """Writes one event in its own transaction; does nothing if an event with its ID exists."""

    async def timeline(self, cluster: UUID, *, after: int = 0, limit: int = 1000) -> list[Event]:
        """Returns events of one cluster by position, even after its deletion; empty if there are none."""

    async def events(self, *, after: int, only: EventFilter = EVERY_EVENT, limit: int = 200) -> list[Event]:
        """Returns the events after a position that pass the filter, by position."""

    async def touched(self, *, after: int, limit: int = 2000) -> tuple[int, set[UUID]]:
        """Returns the last position among the next events, and the clusters that these are about."""

    async def last_position(self) -> int:
        """Returns the newest position; 0 if there is none yet."""
