"""What happened to a cluster, as it is told to the timeline."""

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
        happened_at: when, if that was before the event is written; None: at the moment of writing.
    """

    id: UUID
    cluster: UUID | None
    actor: str
    kind: str
    message: str
    detail: dict[str, str | int | float | bool | None] = Field(default_factory=dict)
    happened_at: AwareDatetime | None = None
