"""What happened to a cluster, as it is told to the timeline."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal, get_args
from uuid import UUID, uuid5

from pydantic import AwareDatetime, Field

from edgewright.domain.bounds import AtMost, Sentence, Word
from edgewright.domain.cluster import Frozen

EventKind = Literal[
    "centre.restored",
    "certificate.changed",
    "certificate.proposed",
    "certificate.refused",
    "cluster.blocked",
    "cluster.changed",
    "cluster.created",
    "cluster.deleted",
    "cluster.deletion_requested",
    "cluster.paused",
    "cluster.recreated",
    "cluster.removed",
    "cluster.resumed",
    "cluster.undeleted",
    "credential.proven",
    "credential.registered",
    "credential.resumed",
    "credential.retired",
    "credential.revoked",
    "credential.rotated",
    "credential.rotation_asked",
    "credential.suspended",
    "delete.refused",
    "edge.accepted",
    "edge.events_omitted",
    "edge.fetching_asked",
    "edge.fetching_unasked",
    "edge.fork_ended",
    "edge.forked",
    "edge.goodbye",
    "edge.inventory_empty",
    "edge.joined",
    "edge.moved",
    "edge.not_purged",
    "edge.purged",
    "edge.registered",
    "edge.rejected",
    "edge.status",
    "edge_status.refused",
    "entries.installed",
    "entry.deleted",
    "entry.put",
    "git.drifted",
    "git.pushed",
    "lease.expired",
    "lease.renewed",
    "notification.given_up",
    "operator_token.created",
    "operator_token.revoked",
    "pause.refused",
    "phase.changed",
    "reseal.asked",
    "reseal.ended",
    "reseal.unreadable",
    "resume.refused",
    "sealing_key.refused",
    "secret.deleted",
    "secret.edge_healed",
    "secret.edge_refused",
    "secret.labelled",
    "secret.put",
    "secret.refused",
    "secret.resealed",
    "signals.dropped",
    "step.blocked",
    "step.done",
    "step.failed",
    "step.retried",
    "step.skipped",
    "token.issued",
    "webhook.removed",
    "webhook.set",
    "webhook.stopped",
]
"""What can happen, ``dotted.words``; the glossary says what each means. The list only ever grows: the audit log is
kept for ever, and so are the kinds in it."""
EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)


EVENTS_BYTES = 256 * 1024
"""Of all events in one message."""


class NewEvent(Frozen):
    """An event to be written in the same transaction as the change it tells of.

    Args:
        id: unique; writing the same ID again changes nothing.
        actor: who caused it: ``token:<name>``, ``agent``, ``flux``, ``temporal``, ``centre``, ``edge``.
        kind: what happened, one of ``EVENT_KINDS``. Read as any text: a newer program may have written it.
        message: one sentence for people; free of secrets.
        detail: a few scalar facts for machines; free of secrets.
        happened_at: when, if that was before the event is written; None: at the moment of writing.
    """

    id: UUID
    cluster: UUID | None
    actor: Word
    kind: Word
    message: Sentence
    detail: Annotated[dict[Word, Word | int | float | bool | None], AtMost(20)] = Field(default_factory=dict)
    happened_at: AwareDatetime | None = None


def event_id(
    cluster: UUID, *, kind: str, message: str, facts: Mapping[str, object], at: datetime, twins: int
) -> UUID:
    """The ID of what a workflow tells: the same for the same event, and another one for any other.

    It follows from what is told, not from the workflow's random numbers: a workflow whose server was put back to an
    earlier copy draws the same numbers again, for other events.

    Args:
        facts: the detail of the event.
        at: when it happened.
        twins: how many events are told already that are the same in all of this.
    """
    told = [kind, message, dict(facts), at.isoformat(), twins]
    return uuid5(cluster, json.dumps(told, sort_keys=True))
