"""Messages between the workflow of a cluster and its activities. Additive only: see docs/adr/0001."""

from typing import Annotated
from uuid import UUID

from pydantic import Field, JsonValue

from edgewright.domain.bounds import STATUS_BYTES, AtMost, Sentence, WithinBytes, Word
from edgewright.domain.cluster import Fence, Frozen, StepName, Wanted
from edgewright.domain.events import EVENTS_BYTES, NewEvent
from edgewright.domain.projection import Projection


class ReadWanted(Frozen):
    """Asks for one reading of the database.

    Args:
        seed: also the last projection, for a workflow that was started empty.
        desired_revision: what the observed revision is compared with.
    """

    cluster: UUID
    seed: bool = False
    desired_revision: Word | None = None


class Reading(Frozen):
    """``wanted`` None: that UUID was never a cluster. ``seed``: the last projection, if it was asked for."""

    wanted: Wanted | None = None
    seed: Projection | None = None


class StepInput(Frozen):
    """One attempt at one step."""

    fence: Fence
    step: StepName
    actor: Word = "centre"


class StepResult(Frozen):
    """What a step reached.

    Args:
        commit: the newest commit that the centre made, if the step commits.
        rendered_digest: what the files were rendered from, if the step renders.
        note: one sentence for the timeline, if there is something to tell.
    """

    commit: Word | None = None
    rendered_digest: Word | None = None
    note: Sentence = ""


class StepsInput(Frozen):
    """One attempt at several steps that follow each other."""

    fence: Fence
    steps: Annotated[tuple[StepName, ...], AtMost(32)]


class FinishedStep(Frozen):
    """A step that is done. ``seconds``: how long it took by the worker's clock; None: nobody has measured."""

    step: StepName
    result: StepResult = StepResult()
    seconds: float | None = None


class StepsResult(Frozen):
    """The steps that are done, in order; fewer than asked for if one of them did not go well."""

    finished: Annotated[tuple[FinishedStep, ...], AtMost(32)] = ()


class Beginning(Frozen):
    """What the first activity of a run has read and, of a new cluster, done.

    Args:
        reading: None: that did not succeed.
        fence: under which steps were run; None: none were.
        finished: as in ``StepsResult``; there is no room for more beside a reading, and a commissioning has no more.
    """

    reading: Reading | None = None
    fence: Fence | None = None
    finished: Annotated[tuple[FinishedStep, ...], AtMost(5)] = ()


class StepFailure(Frozen):
    """Why a step failed, as it travels in the details of an ``ApplicationError``."""

    code: Word
    sentence: Sentence
    hint: Sentence = ""
    where: Sentence = ""
    permanent: bool = False
    retry_after: float | None = None


class Publish(Frozen):
    """A projection and the events that led to it, written in one transaction."""

    cluster: UUID
    projection: Projection
    events: Annotated[tuple[NewEvent, ...], WithinBytes(EVENTS_BYTES)] = ()


class CommitSecrets(Frozen):
    """Asks to commit every staged change of a cluster. The rows hold the ciphertext; this holds none."""

    cluster: UUID


class CommitSecretsResult(Frozen):
    """``commit``: the newest commit that this call made or found; None: there was nothing to commit."""

    commit: Word | None = None
    requests: int = 0
    more: bool = False


class RaiseFence(Frozen):
    """Asks to have every commit refused whose attempt was begun before: commits are paused."""

    cluster: UUID


class RecordDeletion(Frozen):
    """The `delete` signal, to be recorded as the HTTP door records it. ``verb``: see ``PendingVerb.id``."""

    cluster: UUID
    actor: Word
    force: bool = False
    verb: UUID | None = None
    purge: bool = False


class RecordEdgeStatus(Frozen):
    """The signals `edge_status` and `sealing_key_rotated`, to be checked and recorded as the HTTP door does.

    Args:
        body: the JSON as sent.
        merge: ``body`` holds only what changes; the rest of the present status stays.
        verb: see ``PendingVerb.id``.
    """

    cluster: UUID
    actor: Word
    body: Annotated[dict[str, JsonValue], WithinBytes(STATUS_BYTES)] = Field(default_factory=dict)
    merge: bool = False
    verb: UUID | None = None


class RecordPause(Frozen):
    """An operator's `pause` or `resume`. ``seen``: see ``ClusterWishes.set_paused``; ``verb``: see
    ``PendingVerb.id``."""

    cluster: UUID
    actor: Word
    paused: bool
    reason: Sentence = ""
    seen: int | None = None
    verb: UUID | None = None


class Receipt(Frozen):
    """The answer to a recording. ``refusal``: one sentence if it was refused; that is recorded as an event."""

    refusal: Sentence = ""
