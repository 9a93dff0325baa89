"""What signals and updates asked for, in order of arrival, until the loop has applied it."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from temporalio import workflow
from temporalio.exceptions import ActivityError

with workflow.unsafe.imports_passed_through():
    from edgewright.domain.cluster import StepName
    from edgewright.domain.events import EventKind
    from edgewright.messages.cluster import PendingVerb
    from edgewright.messages.steps import Receipt, RecordDeletion, RecordEdgeStatus, RecordPause
    from workflows import policies
    from workflows.failures import UNEXPECTED, failure_of
    from workflows.publication import Publication
    from workflows.step_lane import StepLane

REFUSED: Mapping[str, EventKind] = {
    "delete": "delete.refused",
    "edge_status": "edge_status.refused",
    "sealing_key": "sealing_key.refused",
    "pause": "pause.refused",
    "resume": "resume.refused",
}
"""What is told when a verb cannot be applied; the other ones are judged before they are taken."""
LONGEST_LINE = 1000
LONGEST_QUEUE = 200
"""Signals that are not applied yet (the database may be away for long). More are dropped with an event."""


def as_line(text: str) -> str:
    """One bounded line: Temporal's own tools send anything, and no database takes all of it."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())[:LONGEST_LINE]


class Verbs:
    """A queue. Handlers add, the loop applies."""

    def __init__(self, cluster: UUID, waiting: tuple[PendingVerb, ...], seen: int, applied: int) -> None:
        self._cluster = cluster
        self._queue = list(waiting)
        self.seen = seen
        self.applied = applied

    @property
    def pending(self) -> bool:
        return bool(self._queue)

    def waiting(self) -> tuple[PendingVerb, ...]:
        return tuple(self._queue)

    def add(
        self,
        kind: str,
        actor: str = "temporal",
        *,
        step: StepName | None = None,
        reason: str = "",
        force: bool = False,
        body: dict[str, Any] | None = None,
        seen: int | None = None,
    ) -> int:
        """Adds a verb and returns its number."""
        if len(self._queue) >= LONGEST_QUEUE:
            raise RuntimeError("too many verbs wait for the database")
        self.seen += 1
        self._queue.append(
            PendingVerb(
                kind=kind,
                number=self.seen,
                actor=as_line(actor),
                step=step,
                reason=as_line(reason),
                force=force,
                body=body or {},
                seen=seen,
            )
        )
        return self.seen

    def delete(self, options: Any) -> None:
        """Takes the signal `delete`; anything but an object with `force` counts as no option."""
        force = isinstance(options, dict) and options.get("force") is True
        self.add("delete", force=force)

    def edge_status(self, body: Any) -> None:
        """Takes the signal `edge_status`."""
        if isinstance(body, dict):
            self.add("edge_status", body=body)

    def sealing_key_rotated(self, body: Any) -> None:
        """Takes the signal `sealing_key_rotated`: a PEM, or an object that holds one."""
        if isinstance(body, str):
            self.add("sealing_key", body={"kubeseal_cert": body})
        elif isinstance(body, dict) and "kubeseal_cert" in body:
            self.add("sealing_key", body={"kubeseal_cert": body["kubeseal_cert"]})

    async def apply(self, steps: StepLane, publication: Publication) -> None:
        """Applies the queue in order. ActivityError: the database is away; the rest stays queued."""
        while self._queue:
            verb = self._queue[0]
            try:
                refusal = await self._apply(verb, steps)
            except ActivityError as error:
                failure = failure_of(error)
                if failure.code != UNEXPECTED or verb.kind == "delete":
                    raise
                refusal = failure.sentence  # what it holds cannot be recorded; kept, it would hold up all others
            if refusal:
                publication.tell(REFUSED[verb.kind], f"Refused: {refusal}", actor=verb.actor)
            self._queue.pop(0)
            self.applied = verb.number

    async def _apply(self, verb: PendingVerb, steps: StepLane) -> str:
        match verb.kind:
            case "retry_step" if verb.step:
                steps.retry(verb.step, actor=verb.actor)
            case "skip_step" if verb.step and steps.can_skip(verb.step):
                steps.skip(verb.step, verb.reason, actor=verb.actor)
            case "delete":
                message = RecordDeletion(cluster=self._cluster, actor=verb.actor, force=verb.force)
                return await self._record("record_deletion", message)
            case "edge_status" | "sealing_key":
                status = RecordEdgeStatus(
                    cluster=self._cluster, actor=verb.actor, body=verb.body, merge=verb.kind == "sealing_key"
                )
                return await self._record("record_edge_status", status)
            case "pause" | "resume":
                pause = RecordPause(
                    cluster=self._cluster,
                    actor=verb.actor,
                    paused=verb.kind == "pause",
                    reason=verb.reason,
                    seen=verb.seen,
                )
                return await self._record("record_pause", pause)
        return ""

    async def _record(self, activity: str, message: RecordDeletion | RecordEdgeStatus | RecordPause) -> str:
        receipt: Receipt = await workflow.execute_activity(activity, message, result_type=Receipt, **policies.RECORD)
        return receipt.refusal
