"""At most one `change_secrets` update of a cluster is under way in this process; what comes meanwhile goes together.

The workflow has few update slots and commits many requests in one commit, so that a burst of secrets costs two
updates, not a hundred.
"""

import asyncio
from dataclasses import dataclass, field
from uuid import UUID

import structlog

from api.commit_watch import CommitWatch, Outcome
from edgewright.errors import EdgewrightError
from edgewright.ports.fleet import Fleet, FleetUnavailable
from edgewright.ports.git_server import CommitId

_log = structlog.get_logger("edgewright.api")

CALLER_SECONDS = 20.0
"""How long a caller waits for its commit."""


@dataclass
class _ClusterLane:
    """The requests of one cluster that wait for the next update, and who waits for them."""

    waiting: dict[UUID, Outcome] = field(default_factory=dict)
    runner: "asyncio.Task[None] | None" = None


class SecretLanes:
    """The lanes of all clusters of one process.

    Args:
        watch: tells callers of their commit before the update is answered.
        deadline: seconds after which a caller is told that its commit is not confirmed yet.
    """

    def __init__(self, fleet: Fleet, watch: CommitWatch, *, deadline: float = CALLER_SECONDS) -> None:
        self._fleet = fleet
        self._watch = watch
        self._deadline = deadline
        self._lanes: dict[UUID, _ClusterLane] = {}

    async def change(self, cluster: UUID, request: UUID) -> CommitId | None:
        """Returns when a staged request is dealt with: its commit, or None if its rows have to tell how.

        Raises:
            FleetUnavailable: nobody can say within the deadline; the request stays staged.
        """
        lane = self._lanes.setdefault(cluster, _ClusterLane())
        outcome = lane.waiting.get(request)
        if outcome is None:
            outcome = lane.waiting[request] = asyncio.get_running_loop().create_future()
            outcome.add_done_callback(_seen)
        if lane.runner is None:
            lane.runner = asyncio.create_task(self._run(cluster, lane))
            lane.runner.add_done_callback(_log_defect)
        done, _ = await asyncio.wait({outcome}, timeout=self._deadline)
        if not done:
            raise FleetUnavailable("The commit was not confirmed in time.")
        return outcome.result()

    async def _run(self, cluster: UUID, lane: _ClusterLane) -> None:
        together: dict[UUID, Outcome] = {}
        try:
            while lane.waiting:
                together, lane.waiting = lane.waiting, {}
                await self._update(cluster, together)
        finally:
            # Whatever ended the loop, nobody may wait for it, and the next request starts a new one.
            self._lanes.pop(cluster, None)
            _settle({**together, **lane.waiting}, FleetUnavailable("The commit was not confirmed."))

    async def _update(self, cluster: UUID, together: dict[UUID, Outcome]) -> None:
        self._watch.add(together)
        try:
            async with asyncio.timeout(self._deadline):
                await self._fleet.change_secrets(cluster, list(together))
        except TimeoutError:
            _settle(together, FleetUnavailable("The commit was not confirmed in time."))
        except EdgewrightError as error:
            _settle(together, error)
        else:
            _settle(together, None)


def _settle(outcomes: dict[UUID, Outcome], error: EdgewrightError | None) -> None:
    for outcome in outcomes.values():
        if outcome.done():
            continue
        if error is None:
            outcome.set_result(None)
        else:
            outcome.set_exception(error)


def _log_defect(runner: "asyncio.Task[None]") -> None:
    """An unexpected error ends the runner; its callers were told, its kind is logged."""
    if not runner.cancelled() and (error := runner.exception()) is not None:
        _log.error("a lane of secrets broke off", error=type(error).__name__)


def _seen(outcome: Outcome) -> None:
    """Marks an error as seen: its caller may have left."""
    if not outcome.cancelled():
        outcome.exception()
