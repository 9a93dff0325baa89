"""What the timeline has to tell: each thing that was done, once, and nothing else."""

from collections import Counter
from collections.abc import Iterable
from itertools import pairwise

from edgewright.adapters.database.secrets.secret_staging import event_of
from edgewright.ports.audit import Event
from edgewright.ports.secret_staging import StagedChange

Told = tuple[str, str]
"""The kind of an event, and what tells it from others of its kind (``MARKS``), or else nothing."""

MARKS = {
    "certificate.changed": "fingerprint",
    "cluster.changed": "etag",
    "cluster.paused": "reason",
    "cluster.recreated": "commissioning",
    "credential.proven": "role",
    "credential.registered": "role",
    "credential.rotated": "role",
    "edge.joined": "generation",
    "edge.registered": "kube_system_uid",
    "edge.status": "hosts",
    "lease.expired": "epoch",
    "lease.renewed": "epoch",
    "step.done": "step",
}
"""The fact of an event's detail that names it, by kind."""
NAMED_BY_ID = frozenset({"secret.put", "secret.deleted"})
NAMED_BY_MESSAGE = frozenset({"phase.changed"})


def told_by(event: Event) -> Told:
    """What an event tells."""
    if event.kind in NAMED_BY_ID:
        return event.kind, str(event.id)
    if event.kind in NAMED_BY_MESSAGE:
        return event.kind, event.message
    return event.kind, str(event.detail[MARKS[event.kind]]) if event.kind in MARKS else ""


class Ledger:
    """Everything that was done to the cluster, by whoever did it."""

    def __init__(self) -> None:
        self.expected: Counter[Told] = Counter()

    def note(self, kind: str, mark: object = "") -> None:
        self.expected[kind, str(mark)] += 1

    def note_steps(self, *steps: str) -> None:
        for step in steps:
            self.note("step.done", step)

    def note_phases(self, *phases: str) -> None:
        """The way from one phase to the next."""
        for before, now in pairwise(phases):
            self.note("phase.changed", f"Now {now} (was {before}).")

    def note_secret(self, change: StagedChange) -> None:
        kind = "secret.deleted" if change.ciphertext is None else "secret.put"
        self.note(kind, event_of(change.request, change.place, change.sealed_at))

    def differences(self, timeline: Iterable[Event]) -> list[str]:
        """What was lost and what was told too often; empty if the timeline is complete."""
        told = Counter(told_by(event) for event in timeline)
        lost = [f"lost {count} times: {what}" for what, count in (self.expected - told).items()]
        return lost + [f"told {count} times too often: {what}" for what, count in (told - self.expected).items()]
