"""Messages to the workflow of a cluster, and its state. Additive only: a field is added with a default, and
neither renamed nor removed, because histories and running clusters hold the older ones."""

from enum import StrEnum
from typing import Annotated
from uuid import UUID

from pydantic import Field, JsonValue

from edgewright.domain.bounds import STATUS_BYTES, AtMost, Sentence, WithinBytes, Word, WordOf
from edgewright.domain.cluster import Frozen, StepName
from edgewright.domain.events import EVENTS_BYTES, NewEvent
from edgewright.domain.projection import Done, Projection

QUEUE_BYTES = 320 * 1024
"""Size of all verbs that wait."""


Typed = Annotated[str, AtMost(10_000)]
"""What a person has typed; it becomes a line, and a sentence, afterwards."""


class VerbKind(StrEnum):
    """What signals and updates ask of the workflow of a cluster."""

    DELETE = "delete"
    EDGE_STATUS = "edge_status"
    SEALING_KEY = "sealing_key"
    PAUSE = "pause"
    RESUME = "resume"
    RETRY_STEP = "retry_step"
    SKIP_STEP = "skip_step"


class PendingVerb(Frozen):
    """Something that a signal or an update asked for, waiting for the run loop.

    Args:
        number: place in the order of arrival.
        id: the same in every run that gets this message, because it follows from its place among those of its kind,
            counted through all runs, and from what it says; None: taken by a version that counted none.
        seen: of a pause or resume: the ``change`` of the row as its asker has seen it; None: it was not looked at.
    """

    kind: WordOf[VerbKind]
    number: int
    actor: Word = "temporal"
    step: StepName | None = None
    reason: Sentence = ""
    force: bool = False
    body: Annotated[dict[str, JsonValue], WithinBytes(STATUS_BYTES)] = Field(default_factory=dict)
    seen: int | None = None
    id: UUID | None = None


class ClusterState(Frozen):
    """Everything that a cluster's workflow remembers; carried through continue-as-new.

    Args:
        projection: what was published last; None before the first publication.
        done: what finished plans have reached.
        plan: key of the plan that the projection's steps belong to.
        verbs: asked for and not applied yet.
        verbs_applied: number of the newest verb that the loop has applied.
        heard: how many messages of each kind have come, dropped ones too.
        events: told, but not published yet.
        attempted: sequence of the newest projection that was sent, whether or not the database has taken it.
        untold: the projection has what was never published: the run ended first.
        runs: how many runs (continue-as-new) this execution had before this one.
    """

    projection: Projection | None = None
    done: Done = Done()
    verbs: Annotated[tuple[PendingVerb, ...], WithinBytes(QUEUE_BYTES)] = ()
    verbs_applied: int = 0
    verbs_seen: int = 0
    events: Annotated[tuple[NewEvent, ...], WithinBytes(EVENTS_BYTES)] = ()
    heard: Annotated[dict[Word, int], AtMost(16)] = Field(default_factory=dict)
    told: int = 0
    attempted: int = 0
    untold: bool = False
    runs: int = 0


class ManagedClusterInput(Frozen):
    """Starts the workflow of a cluster.

    Args:
        state: None: read it from the database.
        together: whether quick steps that follow each other are one activity, and what they lead to is told without
            another reading. Runs that were begun before that was possible have it not, and go on as they began.
    """

    cluster: UUID
    state: ClusterState | None = None
    together: bool = False


class ReconcileSignal(Frozen):
    """A nudge: something changed in the database. ``bulk``: nobody waits for it."""

    bulk: bool = False


class ChangeSecrets(Frozen):
    """Asks to commit staged requests, and waits until that is done."""

    requests: Annotated[tuple[UUID, ...], AtMost(1000)]


class ChangeSecretsResult(Frozen):
    """The rows of the requests tell the outcome; ``settled`` False: not within the time allowed."""

    settled: bool


class StepVerb(Frozen):
    """`retry_step` and `skip_step`. ``reason`` is required to skip."""

    step: StepName
    actor: Word = "temporal"
    reason: Typed = ""


class PauseVerb(Frozen):
    """`pause` and `resume`. ``seen``: see ``PendingVerb``."""

    actor: Word = "temporal"
    reason: Typed = ""
    seen: int | None = None


class Readiness(Frozen):
    """The answer to the query `readiness`."""

    ready: bool
    phase: Word
    waiting_for: Sentence
