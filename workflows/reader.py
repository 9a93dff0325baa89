"""Reads what is wanted of a cluster, and what each reading was compared with."""

from uuid import UUID

from temporalio import workflow

from edgewright.domain.cluster import Wanted
from edgewright.messages.steps import Reading, ReadWanted
from workflows import policies

AHEAD = "a commit of a step is ahead of the edge"
"""Patch. Runs that began before it say that an edge is up to date until the next reading, whatever was rendered."""


class Reader:
    """Reads the database for one run.

    Args:
        seeded: whether the run knows what was published last; otherwise it reads that as well.
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

    def not_applied_yet(self, wanted: Wanted, newest: str | None, *, of_secrets: bool) -> Wanted:
        """What the last reading says of the newest commit: no edge has applied one that was made a moment ago.

        Args:
            of_secrets: whether secrets have been committed since.
        """
        if wanted.observed_descends and newest not in {self._compared_with, wanted.head} and workflow.patched(AHEAD):
            return wanted.model_copy(update={"observed_descends": False, "head": newest})
        return wanted.model_copy(update={"observed_descends": False}) if of_secrets else wanted
