"""How the gateway and the activities reach the cluster workflows."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from edgewright.domain.cluster import StepName
from edgewright.domain.projection import Projection
from edgewright.errors import Waiting


class FleetUnavailable(Waiting):
    """Temporal, or a worker, did not answer in time."""

    code = "temporal_unavailable"


class Fleet(Protocol):
    """Every call has a deadline, and raises ``FleetUnavailable`` when it passes."""

    async def nudge(self, cluster: UUID, *, bulk: bool = False) -> None:
        """Makes the workflow re-read its row. Starts it if it does not run, and restarts it if it accepts no more
        messages. Raises if Temporal is unavailable."""

    async def change_secrets(self, cluster: UUID, requests: Sequence[UUID]) -> None:
        """Returns when the workflow has handled the staged requests; their rows hold the results."""

    async def retry_step(self, cluster: UUID, step: StepName, *, actor: str) -> Projection:
        """Retries a waiting or blocked step now; ``Conflict`` code ``step_not_waiting``."""

    async def skip_step(self, cluster: UUID, step: StepName, *, reason: str, actor: str) -> Projection:
        """Skips a deletion step on another system; ``Conflict`` code ``step_not_skippable``."""

    async def pause(self, cluster: UUID, *, reason: str, actor: str, seen: int | None = None) -> Projection:
        """Stops commits until resumed. ``seen``: see ``ClusterWishes.set_paused``, but nothing is raised here."""

    async def resume(self, cluster: UUID, *, actor: str, seen: int | None = None) -> Projection:
        """Lets commits continue. ``seen``: as for ``pause``."""

    async def readiness(self, cluster: UUID) -> Projection:
        """Asks the workflow itself (query, short deadline)."""

    async def running(self) -> set[UUID]:
        """Returns the clusters whose workflows run, as of a few seconds ago."""

    async def stands_still(self, cluster: UUID) -> bool:
        """Whether the cluster's workflow keeps failing in workers; False if none runs."""

    async def begin_anew(self, cluster: UUID) -> None:
        """Ends the workflow's run, and starts an empty one that continues from the database."""

    async def deliver_notifications(self, *, news: bool) -> None:
        """Starts the workflow that delivers notifications unless it runs. ``news``: makes it stop waiting."""

    async def healthy(self) -> bool:
        """Whether Temporal answers within a second."""

    async def restore_sweep(self, every: timedelta) -> bool:
        """Creates the schedule of the sweep if there is none; returns whether it did. A paused one stays paused."""

    async def forget_sweeps(self) -> int:
        """Removes old rounds of the sweep from Temporal's list of workflows, except the newest and those that did not
        complete; returns how many. If there are very many, each call removes some."""

    async def sweep_is_paused(self) -> bool:
        """Whether somebody has paused the schedule of the sweep; False if there is none."""
