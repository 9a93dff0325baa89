"""Reads what is wanted of a cluster: for a new one together with its first steps, later whenever it may differ."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from temporalio import workflow

from edgewright.domain.cluster import Wanted
from edgewright.domain.lifecycle import Plan
from edgewright.messages.steps import Beginning, Reading, ReadWanted
from workflows import policies
from workflows.step_attempts import begin, forget
from workflows.step_lane import StepLane

BEGUN = "steps with the first reading"
"""Patch. Earlier runs read first, and then request the steps of a new cluster."""
AHEAD = "a commit of a step is ahead of the edge"
"""Patch. Earlier runs call an edge up to date until the next reading, whatever was rendered."""


class Reader:
    """Reads the database for one run.

    Args:
        seeded: whether the run knows the last publication; otherwise it reads that as well.
    """

    def __init__(self, cluster: UUID, *, seeded: bool) -> None:
        self._cluster = cluster
        self.seeded = seeded
        self._compared_with: str | None = None

    async def read(self, newest_commit: str | None) -> Reading:
        """Reads what is wanted, and whether the edge has applied ``newest_commit``.

        Raises:
            ActivityError: the database is out of reach.
        """
        self._compared_with = newest_commit
        reading: Reading = await workflow.execute_activity(
            "read_wanted",
            ReadWanted(cluster=self._cluster, seed=not self.seeded, desired_revision=newest_commit),
            result_type=Reading,
            **policies.READ,
        )
        return reading

    def newest_commit(self, reading: Reading, newest: str | None) -> tuple[str | None, bool]:
        """Returns the centre's newest commit, and whether another reading is needed.

        Args:
            newest: the newest commit that the run knows now: a step may have committed during the reading.
        """
        wanted, seed = reading.wanted, reading.seed
        if wanted is None or wanted.secrets_commit is None:
            return newest, False
        if newest != (self._compared_with or (seed.desired_revision if seed else None)):
            return newest, True
        self._compared_with = wanted.secrets_commit
        return wanted.secrets_commit, False

    def not_applied_yet(self, wanted: Wanted, newest: str | None, *, of_secrets: bool) -> Wanted:
        """Corrects the last reading for a newer commit: no edge has applied one that was made a moment ago.

        Args:
            of_secrets: whether secrets have been committed since.
        """
        if wanted.observed_descends and newest not in {self._compared_with, wanted.head} and workflow.patched(AHEAD):
            return wanted.model_copy(update={"observed_descends": False, "head": newest})
        return wanted.model_copy(update={"observed_descends": False}) if of_secrets else wanted


class FirstReading:
    """The first reading. It also runs the steps of a new cluster, and may wait in the bulk queue for a long time.

    Args:
        due: whether nothing was read before.
    """

    def __init__(self, cluster: UUID, *, due: bool) -> None:
        self._cluster = cluster
        self._due = due
        self._beginning: tuple[asyncio.Task[Beginning], datetime] | None = None
        """The attempt and its start time, until the lane takes it over."""

    def begins(self) -> bool:
        """Whether the next reading is the first one. Returns True at most once."""
        due, self._due = self._due, False
        return due and workflow.patched(BEGUN)

    async def read(self, meanwhile: Callable[[], bool]) -> Reading | None:
        """Starts the first reading. None: the database is unavailable, or somebody cannot wait for the reading.

        Args:
            meanwhile: whether there is a request that must not wait for the bulk queue.
        """
        beginning = asyncio.create_task(begin(self._cluster))
        self._beginning = (beginning, workflow.now())
        await workflow.wait_condition(lambda: beginning.done() or meanwhile())
        return beginning.result().reading if beginning.done() else None

    def hand_over(self, steps: StepLane, plan: Plan, wanted: Wanted, *, new: bool) -> None:
        """Lets the lane continue with the steps that were started, if there are any.

        Args:
            new: whether nothing was published about the cluster before; otherwise the steps are dropped.
        """
        if self._beginning is None:
            return
        (beginning, since), self._beginning = self._beginning, None
        if new:
            steps.take_over(beginning, plan, wanted, since=since)
        else:
            forget(beginning)
