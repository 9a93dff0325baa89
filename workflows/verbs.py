"""What signals and updates asked for, in order of arrival, until the loop has applied it."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid5

from pydantic_core import to_json
from temporalio import workflow
from temporalio.common import RawValue
from temporalio.exceptions import ActivityError

from edgewright.domain.bounds import STATUS_BYTES, STATUS_LEVELS, STATUS_NODES
from edgewright.domain.cluster import StepName
from edgewright.domain.events import EventKind
from edgewright.domain.json import is_within
from edgewright.messages import names
from edgewright.messages.cluster import PendingVerb, VerbKind
from edgewright.messages.steps import Receipt, RecordDeletion, RecordEdgeStatus, RecordPause
from workflows import policies
from workflows.failures import UNEXPECTED, failure_of
from workflows.publication import Publication
from workflows.signals import (
    TOLD,
    UNREADABLE,
    RefusedSignals,
    as_line,
    counted,
    input_problem,
    is_foreign,
    json_of,
)
from workflows.step_lane import StepLane

REFUSED: Mapping[str, EventKind] = {
    VerbKind.DELETE: EventKind.DELETE_REFUSED,
    VerbKind.EDGE_STATUS: EventKind.EDGE_STATUS_REFUSED,
    VerbKind.SEALING_KEY: EventKind.SEALING_KEY_REFUSED,
    VerbKind.PAUSE: EventKind.PAUSE_REFUSED,
    VerbKind.RESUME: EventKind.RESUME_REFUSED,
}
"""What is told when a verb cannot be applied; the other ones are judged before they are taken."""
SIGNALLED: Mapping[str, str] = {
    VerbKind.DELETE: names.SIGNAL_DELETE,
    VerbKind.EDGE_STATUS: names.SIGNAL_EDGE_STATUS,
    VerbKind.SEALING_KEY: names.SIGNAL_SEALING_KEY_ROTATED,
}
"""Verbs that come as a signal."""
LONGEST_QUEUE = 200
"""Signals that are not applied yet (the database may be away for long). More are dropped, with one event."""
ROOM_FOR_DELETIONS = 10
"""Further places in the queue, for `delete` alone: it gets through a flood of other signals."""
ROOM_FOR_UPDATES = 50
"""Further places still, which no signal takes: a flood keeps no operator from pausing."""
LARGEST_QUEUE = 192 * 1024
"""Bytes of all inputs in the queue: a run carries them into the next one, in one payload (``QUEUE_BYTES``)."""
BATCH = 20
"""Verbs that are applied before the loop looks at what else is wanted."""

LARGEST_WITH_UPDATES = 256 * 1024
"""The same with what updates have added: they have room of their own, and one more still fits into the payload."""
COUNTED = "bytes that wait"
"""Patch. Runs that began before it count a signal as it was sent, until nothing waits any more."""
BOUNDED = "bounded signals"
"""Patch. Runs that began before it keep larger inputs, drop what is too much in silence, and apply everything that is
queued before they look at what else is wanted."""


class Verbs:
    """A queue. Handlers add, the loop applies."""

    def __init__(
        self,
        cluster: UUID,
        waiting: tuple[PendingVerb, ...],
        seen: int,
        applied: int,
        heard: Mapping[str, int] | None = None,
    ) -> None:
        self._cluster = cluster
        self._queue = list(waiting)
        self._sizes = [_size_of(verb) for verb in waiting]
        self._since_empty = sum(self._sizes)
        self._dropped = 0
        self.refused = RefusedSignals()
        self.heard = Counter(heard or {})
        self.seen = seen
        self.applied = applied

    @property
    def pending(self) -> bool:
        return bool(self._queue)

    def waiting(self) -> tuple[PendingVerb, ...]:
        return tuple(self._queue)

    @property
    def full(self) -> bool:
        """Whether there is no room left, not even for an update."""
        too_many = len(self._queue) >= LONGEST_QUEUE + ROOM_FOR_DELETIONS + ROOM_FOR_UPDATES
        return too_many or sum(self._sizes) > LARGEST_WITH_UPDATES

    def add(
        self,
        kind: VerbKind,
        actor: str = "temporal",
        *,
        step: StepName | None = None,
        reason: str = "",
        force: bool = False,
        body: dict[str, Any] | None = None,
        seen: int | None = None,
    ) -> int:
        """Adds a verb and returns its number. The caller has seen that the queue is not ``full``."""
        self.seen += 1
        if kind not in SIGNALLED:
            self.heard[kind.value] += 1
        said = [step, as_line(reason), force, body, seen]
        verb = PendingVerb(
            kind=kind,
            number=self.seen,
            actor=as_line(actor),
            step=step,
            reason=as_line(reason),
            force=force,
            body=body or {},
            seen=seen,
            id=self._id_of(kind, said),
        )
        self._queue.append(verb)
        self._sizes.append(_size_of(verb))
        return self.seen

    def _id_of(self, kind: VerbKind, said: list[Any]) -> UUID:
        """Updates that are refused are not counted, nor sent again to a run that is reset; signals all are."""
        chain = workflow.info().first_execution_run_id
        place = [chain, kind, self.heard[SIGNALLED.get(kind, kind.value)]]
        return uuid5(self._cluster, json.dumps([*place, *said], sort_keys=True, default=str))

    def signal(self, kind: str, raw: RawValue) -> None:
        """Takes a signal, refuses it because its input means nothing, or drops it: one too large, or one too many."""
        self.heard[kind] += 1
        size = len(raw.payload.data)
        if not self._has_room(kind) or (size > STATUS_BYTES and workflow.patched(BOUNDED)):
            self._dropped += 1
            return
        try:
            body = json_of(raw)
        except ValueError:
            body = UNREADABLE
        too_large = self._too_large_to_carry(size, body)
        problem = "" if too_large else input_problem(kind, UNREADABLE if is_foreign(raw) else body)
        if problem and workflow.patched(TOLD):
            self.refused.take_unfit(kind, problem)
            return
        if too_large or body is UNREADABLE:
            self._dropped += 1
            return
        before = len(self._queue)
        match kind:
            case names.SIGNAL_DELETE:
                self._delete(body)
            case names.SIGNAL_EDGE_STATUS:
                self._edge_status(body)
            case names.SIGNAL_SEALING_KEY_ROTATED:
                self._sealing_key_rotated(body)
        if len(self._queue) > before:
            self._since_empty += size

    def drop(self) -> None:
        """Counts a signal that its handler could not take."""
        self._dropped += 1

    def _has_room(self, kind: str) -> bool:
        waiting = len(self._queue)
        if waiting < LONGEST_QUEUE:
            return True
        return (
            kind == names.SIGNAL_DELETE and waiting < LONGEST_QUEUE + ROOM_FOR_DELETIONS and workflow.patched(BOUNDED)
        )

    def _too_large_to_carry(self, size: int, body: Any) -> bool:
        """Whether the queue, or what is added to it, would be too large. What a run carries on counts, not what was
        sent: a number may take four times as much."""
        as_before = self._since_empty + size > LARGEST_QUEUE
        carried = size if body is UNREADABLE else len(to_json(body))
        misshapen = body is not UNREADABLE and not is_within(body, levels=STATUS_LEVELS, nodes=STATUS_NODES)
        too_large = misshapen or carried > STATUS_BYTES or sum(self._sizes) + carried > LARGEST_QUEUE
        if too_large != as_before and workflow.patched(COUNTED):
            return too_large
        return as_before and workflow.patched(BOUNDED)

    def _delete(self, options: Any) -> None:
        """In runs that began before `TOLD`, anything but an object with `force` or `purge` counts as no option."""
        said = options if isinstance(options, dict) else {}
        purge = {"purge": True} if said.get("purge") is True else None
        self.add(VerbKind.DELETE, force=said.get("force") is True, body=purge)

    def _edge_status(self, body: Any) -> None:
        if isinstance(body, dict):
            self.add(VerbKind.EDGE_STATUS, body=body)

    def _sealing_key_rotated(self, body: Any) -> None:
        """A PEM, or an object that holds one."""
        if isinstance(body, str):
            self.add(VerbKind.SEALING_KEY, body={"kubeseal_cert": body})
        elif isinstance(body, dict) and "kubeseal_cert" in body:
            self.add(VerbKind.SEALING_KEY, body={"kubeseal_cert": body["kubeseal_cert"]})

    async def apply(self, steps: StepLane, publication: Publication) -> None:
        """Applies the first of the queue, in order. ActivityError: the database is away; the rest stays queued."""
        applied = 0
        while self._queue:
            if applied >= BATCH and workflow.patched(BOUNDED):
                return
            verb = self._queue[0]
            try:
                refusal = await self._apply(verb, steps)
            except ActivityError as error:
                failure = failure_of(error)
                if failure.code != UNEXPECTED or verb.kind is VerbKind.DELETE:
                    raise
                refusal = failure.sentence  # what it holds cannot be recorded; kept, it would hold up all others
            if refusal:
                publication.refuse(REFUSED[verb.kind], f"Refused: {refusal}", actor=verb.actor)
            self._queue.pop(0)
            self._sizes.pop(0)
            self.applied = verb.number
            applied += 1
        self._since_empty = 0
        self.tell_of_dropped(publication)

    def tell_of_dropped(self, publication: Publication) -> None:
        """Tells which signals were refused, and with one event how many were dropped since that was told last."""
        self.refused.tell(publication, all_of_them=False)
        number, self._dropped = self._dropped, 0
        if number and workflow.patched(BOUNDED):
            publication.tell(
                EventKind.SIGNALS_DROPPED,
                f"{counted(number)} dropped: too large, nested too deep, with several inputs, or beyond the "
                f"{LONGEST_QUEUE} that may wait. Send one input of at most {STATUS_BYTES // 1024} KiB with each.",
                signals=number,
            )

    async def _apply(self, verb: PendingVerb, steps: StepLane) -> str:
        match verb.kind:
            case VerbKind.RETRY_STEP if verb.step:
                steps.records.retry(verb.step, actor=verb.actor)
            case VerbKind.SKIP_STEP if verb.step and steps.records.can_skip(verb.step):
                steps.skip(verb.step, verb.reason, actor=verb.actor)
            case VerbKind.DELETE:
                deletion = RecordDeletion(
                    cluster=self._cluster,
                    actor=verb.actor,
                    force=verb.force,
                    verb=verb.id,
                    purge=verb.body.get("purge") is True,
                )
                return await self._record("record_deletion", deletion)
            case VerbKind.EDGE_STATUS | VerbKind.SEALING_KEY:
                status = RecordEdgeStatus(
                    cluster=self._cluster,
                    actor=verb.actor,
                    body=verb.body,
                    merge=verb.kind is VerbKind.SEALING_KEY,
                    verb=verb.id,
                )
                return await self._record("record_edge_status", status)
            case VerbKind.PAUSE | VerbKind.RESUME:
                pause = RecordPause(
                    cluster=self._cluster,
                    actor=verb.actor,
                    paused=verb.kind is VerbKind.PAUSE,
                    reason=verb.reason,
                    seen=verb.seen,
                    verb=verb.id,
                )
                return await self._record("record_pause", pause)
        return ""

    async def _record(self, activity: str, message: RecordDeletion | RecordEdgeStatus | RecordPause) -> str:
        receipt: Receipt = await workflow.execute_activity(activity, message, result_type=Receipt, **policies.RECORD)
        return receipt.refusal


def _size_of(verb: PendingVerb) -> int:
    """Bytes that a run carries into the next one."""
    return len(verb.model_dump_json())
