"""What happened, for ever: the timeline of a cluster and the audit log are one table."""

from typing import Protocol
from uuid import UUID

from pydantic import AwareDatetime, Field

from edgewright.domain.cluster import Frozen


class NewEvent(Frozen):
    """An event to be written in the same transaction as the change it tells of.

    Args:
        id: unique; writing the same ID again changes nothing.
        actor: who caused it: ``token:<name>``, ``agent``, ``flux``, ``temporal``, ``centre``, ``edge``.
        kind: what happened, ``dotted.words``, such as ``cluster.created`` or ``step.failed``.
        message: one sentence for people; free of secrets.
        detail: a few scalar facts for machines; free of secrets.
    """

    id: UUID
    cluster: UUID | None
    actor: str
    kind: str
    message: str
    detail: dict[str, str | int | float | bool | None] = Field(default_factory=dict)


class Event(NewEvent):
    """An event as read. ``position`` orders events and resumes streams; ``at`` is the database's clock."""

    position: int
    at: AwareDatetime


class AuditLog(Protocol):
    """Append-only; the table itself refuses UPDATE and DELETE."""

    async def append(self, event: NewEvent) -> None:
        """Writes one event on its own; does nothing if its ID is there."""

    async def timeline(self, cluster: UUID, *, after: int = 0, limit: int = 1000) -> list[Event]:
        """Events of one cluster in order of position, also after its deletion; empty if there are none."""

    async def events(self, *, after: int, cluster: UUID | None = None, limit: int = 200) -> list[Event]:
        """Events of all clusters (or one) behind a position, in order of position."""

    async def last_position(self) -> int:
        """The newest position; 0 while there is none."""
