"""What the sweep does: finds what differs and nudges, ends what has expired, keeps repositories in shape."""

import asyncio
import math
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

import structlog
from temporalio import activity

from activities.drift import note_drift
from edgewright.adapters.temporal.nudging import for_each, nudge_all
from edgewright.application.shared_repositories import SharedRepositories
from edgewright.application.waking import paced
from edgewright.errors import EdgewrightError
from edgewright.messages.sweep import SweepResult
from edgewright.ports.cluster_directory import ClusterDirectory
from edgewright.ports.cluster_steps import ClusterSteps
from edgewright.ports.edge_access import EdgeAccess
from edgewright.ports.edge_reports import EdgeReports
from edgewright.ports.fleet import Fleet
from edgewright.ports.git_server import GitServer
from edgewright.ports.resealing import Resealings
from edgewright.ports.secret_staging import EndedRequests
from edgewright.ports.upgrades import Upgrades
from edgewright.sealing import stale_secrets

log = structlog.get_logger("edgewright.sweep")

LATE_SECONDS = 20.0
"""A cluster that some sweep found unfinished, and that still is so long after, is looked at more closely."""
MOST_LOOKS = 50
"""Looks of that kind at each sweep: each costs two calls to Temporal, and most clusters just wait for something."""
TELLING_SECONDS = 20.0
"""For which a sweep goes on telling workflows; what is left differs still, so that the next one finds it."""
EXPIRY_SECONDS = 5.0
"""The same for those whose lease has just expired: whatever is left is told in a moment, with all others."""
MOST_IDLE_LOOKS = 20
"""At each sweep, of the clusters of which nothing is wanted: each costs one call to Temporal."""
MOST_JUDGED = 500
"""Upgrades that one sweep judges: each costs a transaction."""
MOST_RESEALINGS = 20
"""That one sweep begins: each reads all secrets of a repository."""
UPKEEP_SLOTS = 120
"""Each sweep keeps one in so many repositories: at a sweep every 30 s, each repository about once an hour."""
LEAST_KEPT = 5
"""But so many at least: a small fleet's about once in some minutes, which costs no more than a large one's."""
FIRST_REMINDER = 5.0
"""Seconds after a sweep first saw the step wait; each later pause is as long as it has waited by then."""
LONGEST_PAUSE = 300.0
"""Seconds between two reminders, at most."""
MOST_REMINDERS = 1000
"""At each sweep."""


class UpkeepActivities:
    """Everything here is safe to repeat and to leave out once."""

    def __init__(
        self,
        directory: ClusterDirectory,
        steps: ClusterSteps,
        edge_access: EdgeAccess,
        edge_reports: EdgeReports,
        git: GitServer,
        *,
        repositories: SharedRepositories,
        fleet: Fleet,
        ended_requests: EndedRequests,
        resealings: Resealings,
        upgrades: Upgrades,
    ) -> None:
        self._directory = directory
        self._steps = steps
        self._edge_access = edge_access
        self._edge_reports = edge_reports
        self._git = git
        self._repositories = repositories
        self._fleet = fleet
        self._ended_requests = ended_requests
        self._resealings = resealings
        self._upgrades = upgrades
        self._unfinished_since: dict[UUID, float] = {}
        self._looked_at: dict[UUID, float] = {}
        self._idle_looked_at = uuid4()  # drawn: a worker that is restarted often begins elsewhere each time
        self._told = uuid4()
        self._kept = uuid4()
        self._resealed = uuid4()
        self._judged = uuid4()
        self._reminders = Reminders()

    @activity.defn(name="sweep_expire")
    async def expire(self) -> SweepResult:
        """Leases, registration tokens and upgrades whose time has passed."""
        mended = await self._edge_reports.mend_future()
        if mended:
            log.warning("future_timestamps_reset", found=mended)
        expired = await self._edge_reports.expire_leases()
        tokens = await self._edge_access.expire_tokens()
        await self._tell(expired, seconds=EXPIRY_SECONDS)  # whatever becomes of the upgrades
        await self._tell(await self._judge_upgrades(), seconds=EXPIRY_SECONDS)
        return SweepResult(leases=len(expired), tokens=tokens)

    async def _judge_upgrades(self) -> set[UUID]:
        """Judges the next upgrades round the circle; returns the clusters that want a nudge."""
        nudged: set[UUID] = set()
        for cluster in _round_the_circle(await self._upgrades.under_way(), self._judged)[:MOST_JUDGED]:
            self._judged = cluster  # first, as for re-sealings
            try:
                if await self._upgrades.judge(cluster):
                    nudged.add(cluster)
            except EdgewrightError as trouble:
                log.warning("upgrade_not_judged", cluster=str(cluster), code=trouble.code)
        return nudged

    @activity.defn(name="sweep_nudge")
    async def nudge(self) -> SweepResult:
        """Clusters whose workflow has not taken the row, may have forgotten what it took, or is gone."""
        now = time.monotonic()
        untaken, underway = set(await self._directory.unfinished()), set(await self._directory.underway())
        unfinished = untaken | set(self._reminders.due(underway, now))
        self._unfinished_since = {each: self._unfinished_since.get(each, now) for each in untaken | underway}
        there = set(await self._directory.open_clusters())
        missing = there - await self._fleet.running()  # by ID: a stray workflow does not make up for one that is gone
        late = self._late(unfinished - missing, now)
        still = await self._standing_still([*late, *self._next_idle(there - unfinished - missing)])
        for cluster in still:
            log.warning("stuck_workflow_restarted", cluster=str(cluster))
        await for_each(self._fleet, still, self._fleet.begin_anew)
        if missing:
            log.warning("workflows_missing", count=len(missing))
        turn = _round_the_circle((unfinished | missing) - still, self._told)
        told = await self._tell(turn, seconds=TELLING_SECONDS)
        self._told = told[-1] if told else self._told
        restarted = len(missing.intersection(told))
        return SweepResult(nudged=len(told) - restarted, restarted=restarted, begun_anew=len(still))

    async def _tell(self, clusters: Iterable[UUID], *, seconds: float) -> list[UUID]:
        """Nudges as many as the workers keep up with in a while; returns them."""
        told: list[UUID] = []
        async for portion in paced(self._directory, clusters, seconds=seconds):
            await nudge_all(self._fleet, portion)
            told += portion
        return told

    def _late(self, unfinished: set[UUID], now: float) -> list[UUID]:
        """Those that were unfinished for a while; in turn, for the first ones may wait for something for weeks."""
        late = [cluster for cluster in unfinished if now - self._unfinished_since[cluster] >= LATE_SECONDS]
        turn = sorted(late, key=lambda cluster: self._looked_at.get(cluster, -math.inf))[:MOST_LOOKS]
        self._looked_at = {each: at for each, at in self._looked_at.items() if each in self._unfinished_since}
        self._looked_at |= dict.fromkeys(turn, now)
        return turn

    def _next_idle(self, idle: set[UUID]) -> list[UUID]:
        """The next ones round the circle: what wedges a workflow may have come when nothing was wanted."""
        turn = _round_the_circle(idle, self._idle_looked_at)[:MOST_IDLE_LOOKS]
        self._idle_looked_at = turn[-1] if turn else self._idle_looked_at
        return turn

    def _next_kept(self, there: Sequence[UUID]) -> list[UUID]:
        """The same, of those whose repositories are kept in shape."""
        count = max(LEAST_KEPT, math.ceil(len(there) / UPKEEP_SLOTS))
        turn = _round_the_circle(there, self._kept)[:count]
        self._kept = turn[-1] if turn else self._kept
        return turn

    async def _standing_still(self, suspects: Sequence[UUID]) -> set[UUID]:
        """Those whose workflow no worker gets through (ADR 5)."""
        still: set[UUID] = set()

        async def look(cluster: UUID) -> None:
            if await self._fleet.stands_still(cluster):
                still.add(cluster)

        await for_each(self._fleet, suspects, look)
        return still

    @activity.defn(name="sweep_upkeep")
    async def upkeep(self) -> SweepResult:
        """Notes the round; forgets old rounds and requests; begins re-sealings; keeps some repositories in shape."""
        await self._edge_reports.sweep_ended()
        await self._forget_rounds()
        await self._reseal()
        forgotten = await self._ended_requests.forget()
        kept = 0
        shared = {each.uuid for each in await self._repositories.all()}
        for repository in self._next_kept([*await self._directory.open_clusters(), *shared]):
            try:
                await asyncio.to_thread(self._git.upkeep, repository)
                if repository not in shared:
                    await self._tell_of_drift(repository)
            except EdgewrightError as trouble:
                log.warning("upkeep_failed", repository=str(repository), code=trouble.code)
                continue
            kept += 1
        return SweepResult(kept=kept, forgotten=forgotten)

    async def _forget_rounds(self) -> None:
        """Rounds would fill the page on which people look for clusters."""
        try:
            await self._fleet.forget_sweeps()
        except EdgewrightError as trouble:
            log.warning("sweep_rounds_not_deleted", code=trouble.code, detail=str(trouble))

    async def _tell_of_drift(self, cluster: UUID) -> None:
        """Says once what a put-back of repository or database has lost, and has the cluster rendered again."""
        news = await note_drift(self._directory, self._steps, self._git, cluster)
        if news is None:
            return
        log.warning("repository_drifted", cluster=str(cluster), detail=news or "mended")
        await nudge_all(self._fleet, [cluster])

    async def _reseal(self) -> None:
        """Begins the next due re-sealings round the circle: one that cannot begin stays due, and holds up no other.

        The edge is asked with its next heartbeat.
        """
        for cluster in _round_the_circle(await self._resealings.due(), self._resealed)[:MOST_RESEALINGS]:
            self._resealed = cluster  # first, so that the next round begins behind it whatever happens now
            row = await self._directory.get(cluster)
            if row is None or row.certificate is None:
                continue
            try:
                stale = await asyncio.to_thread(stale_secrets, self._git, cluster, row.certificate.fingerprint)
                begun = await self._resealings.begin(
                    cluster, row.generation, stale, actor="centre", reason="The previous key is over 90 days old."
                )
            except EdgewrightError as trouble:
                log.warning("resealing_not_started", cluster=str(cluster), code=trouble.code)
                continue
            if begun is not None:
                await nudge_all(self._fleet, [cluster])


@dataclass
class _WaitingStep:
    """``since``, ``next_at``: seconds of a clock that only goes forward."""

    since: float
    next_at: float


class Reminders:
    """Remembers who waits, and reminds each at growing intervals: most of them know, and wait for something else.

    A workflow that does not know was put back, with Temporal's database, to before it took what is wanted: the row
    says that it was taken, so nothing else would wake it. Seconds after it was taken that is noticed within seconds,
    and hours after it within ``LONGEST_PAUSE``.
    """

    def __init__(self) -> None:
        self._waiting: dict[UUID, _WaitingStep] = {}

    def due(self, waiting: Collection[UUID], now: float) -> list[UUID]:
        """Which of the waiting clusters are to be reminded now."""
        known = self._waiting
        self._waiting = {each: known.get(each) or _WaitingStep(now, now + FIRST_REMINDER) for each in waiting}
        due = [cluster for cluster, each in self._waiting.items() if each.next_at <= now][:MOST_REMINDERS]
        for cluster in due:
            each = self._waiting[cluster]
            each.next_at = now + min(LONGEST_PAUSE, now - each.since)
        return due


def _round_the_circle(clusters: Iterable[UUID], last: UUID) -> list[UUID]:
    """All of them, those after ``last`` first."""
    return sorted(clusters, key=lambda cluster: (cluster <= last, cluster))
