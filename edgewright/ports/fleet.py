"""The gateway's and the activities' way to the cluster workflows."""

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
    """Every call has a deadline of its own and raises ``FleetUnavailable`` when it passes."""

    async def nudge(self, cluster: UUID, *, bulk: bool = False) -> None:
        """Makes the workflow re-read its row; starts it if it does not run, and begins it anew if it takes no more
        messages. Raises when Temporal is away."""

    async def change_secrets(self, cluster: UUID, requests: Sequence[UUID]) -> None:
        """Returns when the workflow has dealt with the staged requests; their rows tell how."""

    async def retry_step(self, cluster: UUID, step: StepName, *, actor: str) -> Projection:
        """Tries a waiting or blocked step now; ``Conflict`` code ``step_not_waiting``."""

    async def skip_step(self, cluster: UUID, step: StepName, *, reason: str, actor: str) -> Projection:
        """Skips a deletion step on another system; ``Conflict`` code ``step_not_skippable``."""

    async def pause(self, cluster: UUID, *, reason: str, actor: str, seen: int | None = None) -> Projection:
        """No more commits until resumed. ``seen``: see ``ClusterWishes.set_paused``; who is overtaken is not told."""

    async def resume(self, cluster: UUID, *, actor: str, seen: int | None = None) -> Projection:
        """Commits go on. ``seen``: as for ``pause``."""

    async def readiness(self, cluster: UUID) -> Projection:
        """Asks the workflow itself (query, short deadline)."""

    async def running(self) -> set[UUID]:
        """The clusters whose workflows run; a few seconds behind."""

    async def stands_still(self, cluster: UUID) -> bool:
        """Whether what workers try of the cluster's workflow fails again and again; False where none runs."""

    async def begin_anew(self, cluster: UUID) -> None:
        """Ends the workflow's run where it stands, and starts it empty: it goes on from the database."""

    async def deliver_notifications(self, *, news: bool) -> None:
        """Starts the workflow that delivers notifications unless it runs. ``news``: it is not to wait any longer."""

    async def healthy(self) -> bool:
        """Whether Temporal answers within a second."""

    async def restore_sweep(self, every: timedelta) -> bool:
        """Makes the schedule of the sweep if there is none; whether it did. One that is paused stays so."""

    async def forget_sweeps(self) -> int:
        """Takes old rounds of the sweep out of Temporal's list of workflows, except the newest and those that did not
        complete; how many. Where there are very many it takes some at each call."""

    async def sweep_is_paused(self) -> bool:
        """Whether somebody has paused the schedule of the sweep; False if there is none."""
