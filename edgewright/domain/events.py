"""Events in the timeline of a cluster."""

import json
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated
from uuid import UUID, uuid5

from pydantic import AwareDatetime, Field

from edgewright.domain.bounds import AtMost, Sentence, Word, WordOf
from edgewright.domain.cluster import Frozen


class EventKind(StrEnum):
    """What happened. The list grows, so expect kinds that you do not know."""

    CENTRE_RESTORED = "centre.restored"
    CERTIFICATE_CHANGED = "certificate.changed"
    CERTIFICATE_PROPOSED = "certificate.proposed"
    CERTIFICATE_REFUSED = "certificate.refused"
    CHART_PUSHED = "chart.pushed"
    CHART_REMOVED = "chart.removed"
    CLUSTER_BLOCKED = "cluster.blocked"
    CLUSTER_CHANGED = "cluster.changed"
    CLUSTER_CREATED = "cluster.created"
    CLUSTER_DELETED = "cluster.deleted"
    CLUSTER_DELETION_REQUESTED = "cluster.deletion_requested"
    CLUSTER_PAUSED = "cluster.paused"
    CLUSTER_RECREATED = "cluster.recreated"
    CLUSTER_REMOVED = "cluster.removed"
    CLUSTER_RESUMED = "cluster.resumed"
    CLUSTER_UNDELETED = "cluster.undeleted"
    CREDENTIAL_PROVEN = "credential.proven"
    CREDENTIAL_REGISTERED = "credential.registered"
    CREDENTIAL_RESUMED = "credential.resumed"
    CREDENTIAL_RETIRED = "credential.retired"
    CREDENTIAL_REVOKED = "credential.revoked"
    CREDENTIAL_ROTATED = "credential.rotated"
    CREDENTIAL_ROTATION_ASKED = "credential.rotation_asked"
    CREDENTIAL_SUSPENDED = "credential.suspended"
    DELETE_REFUSED = "delete.refused"
    EDGE_ACCEPTED = "edge.accepted"
    EDGE_EVENTS_OMITTED = "edge.events_omitted"
    EDGE_FETCHING_ASKED = "edge.fetching_asked"
    EDGE_FETCHING_UNASKED = "edge.fetching_unasked"
    EDGE_FORK_ENDED = "edge.fork_ended"
    EDGE_FORKED = "edge.forked"
    EDGE_GOODBYE = "edge.goodbye"
    EDGE_INVENTORY_EMPTY = "edge.inventory_empty"
    EDGE_JOINED = "edge.joined"
    EDGE_MOVED = "edge.moved"
    EDGE_NOT_PURGED = "edge.not_purged"
    EDGE_PURGED = "edge.purged"
    EDGE_REGISTERED = "edge.registered"
    EDGE_REJECTED = "edge.rejected"
    EDGE_STATUS = "edge.status"
    EDGE_STATUS_REFUSED = "edge_status.refused"
    ENTRIES_INSTALLED = "entries.installed"
    ENTRY_DELETED = "entry.deleted"
    ENTRY_PUT = "entry.put"
    GIT_DRIFTED = "git.drifted"
    GIT_PUSHED = "git.pushed"
    LEASE_EXPIRED = "lease.expired"
    LEASE_RENEWED = "lease.renewed"
    NOTIFICATION_GIVEN_UP = "notification.given_up"
    OPERATOR_TOKEN_CREATED = "operator_token.created"
    OPERATOR_TOKEN_REVOKED = "operator_token.revoked"
    PAUSE_REFUSED = "pause.refused"
    PHASE_CHANGED = "phase.changed"
    REPOSITORY_CREATED = "repository.created"
    REPOSITORY_REMOVED = "repository.removed"
    RESEAL_ASKED = "reseal.asked"
    RESEAL_ENDED = "reseal.ended"
    RESEAL_UNREADABLE = "reseal.unreadable"
    RESUME_REFUSED = "resume.refused"
    SEALING_KEY_REFUSED = "sealing_key.refused"
    SECRET_DELETED = "secret.deleted"
    SECRET_EDGE_HEALED = "secret.edge_healed"
    SECRET_EDGE_REFUSED = "secret.edge_refused"
    SECRET_LABELLED = "secret.labelled"
    SECRET_PUT = "secret.put"
    SECRET_REFUSED = "secret.refused"
    SECRET_RESEALED = "secret.resealed"
    SIGNAL_UNKNOWN = "signal.unknown"
    SIGNALS_DROPPED = "signals.dropped"
    STEP_BLOCKED = "step.blocked"
    STEP_DONE = "step.done"
    STEP_FAILED = "step.failed"
    STEP_RETRIED = "step.retried"
    STEP_SKIPPED = "step.skipped"
    TOKEN_ISSUED = "token.issued"
    UPGRADE_BEGUN = "upgrade.begun"
    UPGRADE_CANCELLED = "upgrade.cancelled"
    UPGRADE_DONE = "upgrade.done"
    UPGRADE_FAILED = "upgrade.failed"
    UPGRADE_FELL_BACK = "upgrade.fell_back"
    UPGRADE_REPLACED = "upgrade.replaced"
    WEBHOOK_REMOVED = "webhook.removed"
    WEBHOOK_SET = "webhook.set"
    WEBHOOK_STOPPED = "webhook.stopped"


EVENTS_BYTES = 256 * 1024
"""Size of all events in one message."""


class NewEvent(Frozen):
    """A new event, written in the same transaction as the change that it reports.

    Args:
        id: unique; writing the same ID again changes nothing.
        actor: who caused it: ``token:<name>``, ``agent``, ``flux``, ``temporal``, ``centre``, ``edge``.
        kind: what happened. The audit log is kept for ever, and so are its kinds.
        message: one sentence for people; free of secrets.
        detail: a few scalar facts for machines; free of secrets.
        happened_at: when it happened, if earlier than the write; None: at the time of the write.
    """

    id: UUID
    cluster: UUID | None
    actor: Word
    kind: WordOf[EventKind]
    message: Sentence
    detail: Annotated[dict[Word, Word | int | float | bool | None], AtMost(20)] = Field(default_factory=dict)
    happened_at: AwareDatetime | None = None


def event_id(
    cluster: UUID, *, kind: EventKind, message: str, facts: Mapping[str, object], at: datetime, twins: int
) -> UUID:
    """Returns the ID of a workflow's event: the same for the same event, and different for any other.

    It follows from the content, not from the workflow's random numbers: if an earlier copy of Temporal is put back, a
    workflow draws the same numbers again for other events.

    Args:
        facts: the detail of the event.
        at: when it happened.
        twins: how many earlier events are equal in all of this.
    """
    told = [kind, message, dict(facts), at.isoformat(), twins]
    return uuid5(cluster, json.dumps(told, sort_keys=True))
