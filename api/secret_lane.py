"""Commits what this gateway has staged, one commit of a cluster at a time; what comes meanwhile goes together.

What cannot be committed here is left to the cluster's workflow: a large request, and everything while the repository
cannot be written, waits for others, or takes too long.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from uuid import UUID

import structlog
from opentelemetry.trace import NoOpTracer, Tracer

from api.nudges import Nudges
from api.operator_time import METER
from edgewright.application.secret_commits import CommittedSecrets, SecretCommits
from edgewright.errors import EdgewrightError
from edgewright.ports.fleet import Fleet, FleetUnavailable
from edgewright.ports.git_server import CommitId

_log = structlog.get_logger("edgewright.api")

CALLER_SECONDS = 20.0
"""How long a caller waits for its commit."""
PATIENCE_SECONDS = 4.0
"""How long a commit may take here; after that the workflow is asked."""
MOST_CHANGES = 20
"""In one commit; a larger request goes to the worker, whose time is nobody else's."""
AT_ONCE = 3
"""Commits of different clusters; each has a thread while it writes."""

Outcome = asyncio.Future[CommitId | None]
"""Set once a request is dealt with: to its commit, or None if its rows have to tell what came of it."""


@dataclass(frozen=True)
class _Caller:
    """Who waits for a request, and in whose context work is done for it: its trace, and what its log lines say."""

    outcome: Outcome = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    context: Context = field(default_factory=copy_context)


@dataclass
class _ClusterLane:
    """The requests of one cluster that wait for the next commit."""

    waiting: dict[UUID, _Caller] = field(default_factory=dict)
    runner: "asyncio.Task[None] | None" = None


class SecretLanes:
    """The lanes of all clusters of one process.

    Args:
        tracer: makes a span of each commit, in the trace of the first request that waits for it.
        deadline: seconds after which a caller is told that its commit is not confirmed yet.
        patience: seconds that a commit may take here.
    """

    def __init__(
        self,
        commits: SecretCommits,
        fleet: Fleet,
        nudges: Nudges,
        *,
        tracer: Tracer | None = None,
        deadline: float = CALLER_SECONDS,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._commits = commits
        self._fleet = fleet
        self._nudges = nudges
        self._tracer = tracer or NoOpTracer()
        self._deadline = deadline
        self._patience = patience
        self._lanes: dict[UUID, _ClusterLane] = {}
        self._staged_on: dict[UUID, CommitId] = {}
        self._room = asyncio.Semaphore(AT_ONCE)
        self._under_way: set[UUID] = set()
        self._late: set[UUID] = set()
        """Clusters whose commit hangs: while these have all places, nobody waits for one."""

    @contextmanager
    def staged_on(self, request: UUID, head: CommitId | None) -> Iterator[None]:
        """Within it, a request is known not to be in this commit, nor in an older one. None: that is not known.

        Args:
            head: read before anybody can have staged the request.
        """
        if head is not None:
            self._staged_on[request] = head
        try:
            yield
        finally:
            self._staged_on.pop(request, None)

    async def change(self, cluster: UUID, request: UUID) -> CommitId | None:
        """Returns when a staged request is dealt with: its commit, or None if its rows have to tell how.

        Raises:
            FleetUnavailable: nobody can say within the deadline; the request stays staged.
        """
        lane = self._lanes.setdefault(cluster, _ClusterLane())
        if request not in lane.waiting:
            lane.waiting[request] = _Caller()
            lane.waiting[request].outcome.add_done_callback(_seen)
        outcome = lane.waiting[request].outcome
        if lane.runner is None:
            lane.runner = asyncio.create_task(self._run(cluster, lane))
            lane.runner.add_done_callback(_log_defect)
        done, _ = await asyncio.wait({outcome}, timeout=self._deadline)
        if not done:
            raise FleetUnavailable("The commit was not confirmed in time.")
        return outcome.result()

    async def _run(self, cluster: UUID, lane: _ClusterLane) -> None:
        together: dict[UUID, _Caller] = {}
        try:
            while lane.waiting:
                together, lane.waiting = lane.waiting, {}
                await self._deal_with(cluster, together)
        finally:
            # Whatever ended the loop, nobody may wait for it, and the next request starts a new one.
            self._lanes.pop(cluster, None)
            _settle({**together, **lane.waiting}, FleetUnavailable("The commit was not confirmed."))

    async def _deal_with(self, cluster: UUID, together: dict[UUID, _Caller]) -> None:
        try:
            async with asyncio.timeout(self._deadline):
                if not await self._commit_here(cluster, together):
                    await self._fleet.change_secrets(cluster, list(_unsettled(together)))
                    self._nudges.nudge_soon(cluster)  # a condition may say that a value is lost: it is there again
        except TimeoutError:
            _settle(together, FleetUnavailable("The commit was not confirmed in time."))
        except EdgewrightError as error:
            _settle(together, error)
        else:
            _settle(together, None)

    async def _commit_here(self, cluster: UUID, together: dict[UUID, _Caller]) -> bool:
        """Whether everything that was staged is dealt with."""
        more = True
        while more and (left := _unsettled(together)):
            made = await self._one_commit(cluster, next(iter(left.values())).context)
            if made is None:
                return False
            for request in made.commits.keys() & left.keys():
                left[request].outcome.set_result(made.commits[request])
            more = made.more
        return True

    async def _one_commit(self, cluster: UUID, context: Context) -> CommittedSecrets | None:
        """None: it could not be made here, or not in time. It is not broken off then: no one can stop a thread."""
        if cluster in self._under_way or len(self._late) >= AT_ONCE:
            return None
        task = asyncio.create_task(self._in_turn(cluster), context=context)
        self._under_way.add(cluster)
        task.add_done_callback(lambda _: self._ended(cluster))
        task.add_done_callback(_log_defect)
        done, _ = await asyncio.wait({task}, timeout=self._patience)
        if not done:
            self._late.add(cluster)
            return None
        return task.result() if task.exception() is None else None

    def _ended(self, cluster: UUID) -> None:
        self._under_way.discard(cluster)
        self._late.discard(cluster)

    async def _in_turn(self, cluster: UUID) -> CommittedSecrets:
        METER.set(None)  # no token pays: requests of others are in it, and a cluster has one commit at a time
        async with self._room:
            with self._tracer.start_as_current_span(
                "commit secrets",
                record_exception=False,  # the text of an exception may hold anything
                set_status_on_exception=False,
            ):
                made = await self._commits.commit(cluster, staged_on=self._staged_on, most=MOST_CHANGES)
        if made.newest is not None:
            _log.info("secrets committed", cluster=str(cluster), commit=made.newest, requests=len(made.commits))
            self._nudges.nudge_soon(cluster)
        return made


def _unsettled(callers: dict[UUID, _Caller]) -> dict[UUID, _Caller]:
    return {request: caller for request, caller in callers.items() if not caller.outcome.done()}


def _settle(callers: dict[UUID, _Caller], error: EdgewrightError | None) -> None:
    for caller in _unsettled(callers).values():
        if error is None:
            caller.outcome.set_result(None)
        else:
            caller.outcome.set_exception(error)


def _log_defect(task: "asyncio.Task[None] | asyncio.Task[CommittedSecrets]") -> None:
    """An unexpected error ends the task; who waits for it was told or asks the workflow, its kind is logged."""
    if task.cancelled() or (error := task.exception()) is None:
        return
    if isinstance(error, EdgewrightError):
        _log.debug("secret commit left to the workflow", code=error.code)
    else:
        _log.error("secret commit failed unexpectedly", error=type(error).__name__)


def _seen(outcome: Outcome) -> None:
    """Marks an error as seen: its caller may have left."""
    if not outcome.cancelled():
        outcome.exception()
