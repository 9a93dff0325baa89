"""Reads and writes the ``clusters`` row, including what signals ask for."""

import asyncio
from collections.abc import Callable, Sequence
from functools import lru_cache
from uuid import UUID

from temporalio import activity

from edgewright.application.edge_status import EdgeStatusDoor
from edgewright.application.rendering import RenderInputs, digest_of
from edgewright.domain.absence import UnopenedValue, absence_findings, absence_problem, unopened_of
from edgewright.domain.cluster import Desired, EdgeHealth, StepName, Wanted
from edgewright.domain.delivery import delivery_problem, flux_findings
from edgewright.domain.edge_status import EdgeStatus
from edgewright.domain.events import EventKind
from edgewright.domain.health import edge_health
from edgewright.domain.opened_secrets import secret_findings
from edgewright.errors import NotFound, Refused, Stalled, Waiting
from edgewright.messages.steps import (
    Publish,
    Reading,
    ReadWanted,
    Receipt,
    RecordDeletion,
    RecordEdgeStatus,
    RecordPause,
)
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.cluster_steps import ClusterSteps
from edgewright.ports.cluster_wishes import ClusterWishes
from edgewright.ports.clusters import ClusterRow, Once
from edgewright.ports.git_server import CommitId, GitServer
from edgewright.sealing import still_unopened

LOOK_BACK = 500
"""Most commits to search for the newest one by the centre."""
REMEMBERED = 4096
"""Most cached comparisons of two commits; they never change."""


class ClusterActivities:
    """Reads and records for the workflow.

    Args:
        commissioned: called with the seconds from a cluster's creation until it is ready for the first time, by the
            database's clock; called twice if a worker dies at that moment.
    """

    def __init__(
        self,
        wishes: ClusterWishes,
        directory: ClusterDirectory,
        steps: ClusterSteps,
        git: GitServer,
        render_inputs: RenderInputs,
        *,
        commissioned: Callable[[float], None],
    ) -> None:
        self._wishes = wishes
        self._directory = directory
        self._steps = steps
        self._git = git
        self._render_inputs = render_inputs
        self._commissioned = commissioned
        self._is_newer = lru_cache(REMEMBERED)(self._newer)

    @activity.defn(name="read_wanted")
    async def read_wanted(self, question: ReadWanted) -> Reading:
        """Reads what is wanted, with the digest of what would be rendered now."""
        wanted = await self._steps.read_wanted(question.cluster)
        if wanted is None:
            return Reading()
        row = await self._directory.get(question.cluster)
        seed = row.projection if row and question.seed else None
        if row is not None and wanted.desired is Desired.PRESENT:
            wanted = await self._with_rendering(wanted, row)
        if wanted.observed_revision and question.desired_revision:
            head = await self._head(question.cluster)
            newest = head or question.desired_revision
            descends = await self._descends(question.cluster, newest, wanted.observed_revision)
            wanted = wanted.model_copy(update={"head": head, "observed_descends": descends})
        if wanted.secrets_commit is not None:
            known = question.desired_revision or (row.projection.desired_revision if row and row.projection else None)
            wanted = await self._with_newer_commit(wanted, known)
        if row is not None and row.edge_status is not None:
            wanted = await self._as_told(wanted, row.edge_status)
        return Reading(wanted=wanted, seed=seed)

    async def _with_rendering(self, wanted: Wanted, row: ClusterRow) -> Wanted:
        try:
            collected = await self._render_inputs.collect(row)
            digest = await digest_of(collected)
            done = row.projection.done.rendered_digest if row.projection else None
            if digest != done:
                await self._render_inputs.render(collected)
        except Stalled as problem:
            where = f" ({problem.where})" if problem.where else ""
            return wanted.model_copy(update={"render_problem": f"{problem.detail}{where}"})
        begun = wanted.rendering_begun and done is not None
        return wanted.model_copy(update={"render_digest": digest, "rendering_begun": begun})

    async def _as_told(self, wanted: Wanted, status: EdgeStatus) -> Wanted:
        """Adds the edge's reports. What it lacks takes precedence over Flux's messages."""
        lost, count = await self._unopened(wanted.uuid, status)
        told = {
            "delivery_problem": absence_problem(status) or delivery_problem(status),
            "edge_health": _health(status, lost),
            "unopened": tuple(str(each.place) for each in lost),
            "unopened_count": count,
        }
        return wanted.model_copy(update=told)

    async def _unopened(self, cluster: UUID, status: EdgeStatus) -> tuple[list[UnopenedValue], int]:
        """Returns values that no key opens, as the edge found. An unreadable repository does not contradict it."""
        claimed, count = unopened_of(status)
        if not claimed:
            return [], 0
        try:
            lost = await asyncio.to_thread(still_unopened, self._git, cluster, claimed)
        except Waiting:
            lost = claimed
        return lost, count - (len(claimed) - len(lost)) if lost else 0

    async def _head(self, cluster: UUID) -> str | None:
        """Returns the commit that the edge should apply, whoever made it; None if the repository is unreadable."""
        try:
            return await asyncio.to_thread(self._git.head, cluster)
        except (NotFound, Stalled, Waiting):
            return None

    async def _descends(self, cluster: UUID, desired: str, observed: str) -> bool | None:
        """Returns None if the repository is unreadable: other wishes, such as a deletion, do not wait for it."""
        try:
            return await asyncio.to_thread(self._git.is_ancestor, cluster, desired, observed)
        except (NotFound, Stalled, Waiting):
            return None

    async def _with_newer_commit(self, wanted: Wanted, known: CommitId | None) -> Wanted:
        """Keeps the newest commit of secrets only if it is newer than the known commit."""
        commit = wanted.secrets_commit
        try:
            is_newer = commit != known and await asyncio.to_thread(self._is_newer, wanted.uuid, commit, known)
        except (NotFound, Stalled, Waiting):
            is_newer = False
        return wanted if is_newer else wanted.model_copy(update={"secrets_commit": None})

    def _newer(self, repository: UUID, commit: CommitId, known: CommitId | None) -> bool:
        """Whether one commit comes after the other in the history. Blocks.

        Raises:
            NotFound: it has neither, as far as it is read.
        """
        both = {commit} if known is None else {commit, known}
        log = self._git.log(repository, limit=LOOK_BACK, back_to=both, only=lambda each: each.commit in both)
        if not log:
            raise NotFound("Neither commit is in the history.", code="commit_unknown")
        return log[0].commit == commit

    @activity.defn(name="publish")
    async def publish(self, publication: Publish) -> None:
        """Writes the projection and its events."""
        await self._steps.project(publication.cluster, publication.projection, publication.events)
        if _tells_of_first_commissioning(publication):
            row = await self._directory.get(publication.cluster)
            if row is not None and row.projected_at is not None:
                self._commissioned((row.projected_at - row.created_at).total_seconds())

    @activity.defn(name="record_deletion")
    async def record_deletion(self, message: RecordDeletion) -> Receipt:
        """Records a deletion that arrived as a signal."""
        try:
            await self._wishes.request_deletion(
                message.cluster,
                actor=message.actor,
                force=message.force,
                purge=message.purge,
                once=applied_once(message.verb),
            )
        except Refused as refusal:
            return Receipt(refusal=_told(refusal))
        return Receipt()

    @activity.defn(name="record_pause")
    async def record_pause(self, message: RecordPause) -> Receipt:
        """Pauses or resumes commits."""
        try:
            await self._wishes.set_paused(
                message.cluster,
                paused=message.paused,
                reason=message.reason,
                actor=message.actor,
                seen=message.seen,
                once=applied_once(message.verb),
            )
        except Refused as refusal:
            return Receipt(refusal=_told(refusal))
        return Receipt()


class EdgeActivities:
    """Handles the signals `edge_status` and `sealing_key_rotated` by the rules of the HTTP door."""

    def __init__(self, door: EdgeStatusDoor) -> None:
        self._door = door

    @activity.defn(name="record_edge_status")
    async def record_edge_status(self, message: RecordEdgeStatus) -> Receipt:
        """Checks and records a status; a refusal is an answer, not a failure."""
        try:
            await self._door.record(
                message.cluster,
                message.body,
                merge=message.merge,
                actor=message.actor,
                generation=None,
                proposes=True,
                once=applied_once(message.verb),
            )
        except Refused as refusal:
            return Receipt(refusal=_told(refusal))
        return Receipt()


def _told(refusal: Refused) -> str:
    """What the timeline says: the only answer to a signal, so it has the advice, too."""
    advice = refusal.hint or (f"Correct {refusal.where} in the input." if refusal.where else "")
    return f"{refusal.detail} {advice}".strip()


def _health(status: EdgeStatus, lost: Sequence[UnopenedValue]) -> EdgeHealth | None:
    """Judges an edge's reports; None until there is something to judge by."""
    of_flux, others = flux_findings(status), [*secret_findings(status), *absence_findings(status, lost)]
    return None if of_flux is None and not others else edge_health([*(of_flux or ()), *others])


def applied_once(verb: UUID | None) -> Once | None:
    """Returns a verb and the run that applies it; None for runs that began before verbs had IDs."""
    return Once(verb, activity.info().workflow_run_id or "") if verb else None


def _tells_of_first_commissioning(publication: Publish) -> bool:
    """Whether this publishes the first commissioning. A rendering ends in the same step, but changes no phase."""
    if publication.projection.done.commissioning != 1:
        return False
    told = {(event.kind, event.detail.get("step")) for event in publication.events}
    return {(EventKind.STEP_DONE, StepName.PUBLISH_STATUS.value), (EventKind.PHASE_CHANGED, None)} <= told
