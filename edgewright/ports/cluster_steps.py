"""What the workflow of a cluster reads and records, through its activities."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol
from uuid import UUID

from edgewright.domain.cluster import Fence, StepName, Wanted
from edgewright.domain.kubernetes_names import SecretPlace, StoredPlace
from edgewright.domain.projection import Projection
from edgewright.ports.audit import NewEvent, RecordedCommit
from edgewright.ports.git_server import CommitId


class ClusterSteps(Protocol):
    """What the steps of a cluster read and write; each writing call is one transaction.

    A call with a ``Fence`` raises ``Superseded`` unless the row still has the fence's generation and change.
    ``project``, ``record_drift`` and ``end_drift`` raise ``NotFound`` (code ``cluster_unknown``) for a UUID that was
    never a cluster; the latter two raise ``Gone`` (code ``cluster_deleted``) for one whose deletion has finished.
    """

    async def read_wanted(self, cluster: UUID) -> Wanted | None:
        """One consistent reading; None for a UUID that was never a cluster.

        ``render_digest``, ``render_problem``, ``head``, ``observed_descends`` and ``delivery_problem`` are filled in
        by the activity.
        """

    async def check_fence(self, fence: Fence) -> None:
        """Raises ``Superseded`` unless the row still has the fence's generation and change."""

    async def begin_deletion(self, fence: Fence) -> None:
        """Marks the point of no return of a deletion; the workflow calls it before the removal commit."""

    async def project(self, cluster: UUID, projection: Projection, events: Sequence[NewEvent]) -> None:
        """Publishes a projection and its events in one transaction; again: nothing happens.

        Raises:
            Superseded: another projection with this ``sequence`` or a higher one is there: who publishes has
                forgotten it, because Temporal was put back to an earlier copy. Nothing is written.
        """

    async def publish_setup_status(self, fence: Fence, body: Mapping[str, Any]) -> None:
        """Writes the *Edge cluster setup status* entry, fenced; an equal one keeps its revision."""

    async def withdraw_setup_status(self, fence: Fence) -> None:
        """Deletes the setup status entry, fenced. One with the row's own ``commissioning`` stays: it is newer."""

    async def allocate_address(self, fence: Fence, group_id: str) -> None:
        """Writes the Sparkplug address entry, fenced. ``Stalled`` code ``address_taken`` if another has it."""

    async def write_git_entry(self, fence: Fence, path: str) -> None:
        """Writes the Git repository configuration entry, fenced."""

    async def begin_rendering(self, fence: Fence) -> None:
        """Records that a commit of generated files may come about, so that they are rendered again even for a wish
        that was taken back meanwhile; fenced. ``record_rendering`` ends that."""

    async def record_rendering(
        self, fence: Fence, digest: str, sources: Sequence[tuple[UUID, UUID]], *, commit: CommitId
    ) -> None:
        """Remembers which entries (app, object) the generated files came from, and the commit that holds them."""

    async def recorded_commits(self, cluster: UUID, *, limit: int) -> Sequence[RecordedCommit]:
        """What the timeline says has been committed, newest first; fewer than ``limit``: it tells of no more."""

    async def record_drift(
        self,
        cluster: UUID,
        message: str,
        *,
        event: UUID,
        lost: Mapping[StoredPlace, CommitId] | None = None,
        change: int = 0,
        mended: bool = False,
        secrets_commit: CommitId | None = None,
    ) -> bool:
        """Tells once that repository and database do not belong together, and makes a rendering due.

        Args:
            event: ID of the event, the same for the same finding.
            lost: values that must be entered again -> the commit that they were in.
            change: what the repository was written for; the row goes on with a higher one, for a fence names one
                wish only.
            mended: the cluster was rendered again since.
            secrets_commit: of the row before anything was compared. If another one is recorded by now, nothing is
                done: it may hold what seemed lost.

        Returns:
            Whether it is told for the first time, or has come again after a rendering.
        """

    async def lost_in_drift(self, cluster: UUID) -> Mapping[StoredPlace, CommitId]:
        """The values that drift has made to be entered again -> the commit that they were in."""

    async def end_drift(self, cluster: UUID, *, back: Collection[StoredPlace], mended: bool) -> bool:
        """Takes values whose commit is ``back`` from what must be entered again; ends the
        drift with the last of them, once the cluster is ``mended``: rendered again. Returns whether it has ended."""

    async def record_reentry(
        self,
        fence: Fence,
        *,
        taken: Collection[SecretPlace] = (),
        there: Collection[SecretPlace] = (),
        secrets_commit: CommitId | None = None,
    ) -> bool:
        """Adds to the list of what must be entered again what was taken away, and takes from it what is there.

        Args:
            taken: values; or the Secret as a whole, of a file that nobody could read.
            there: the same; sealed for the present hardware.
            secrets_commit: see ``record_drift``.

        Returns:
            Whether it was done.
        """

    async def remove_central_entries(self, fence: Fence, step: StepName) -> None:
        """The parts of a deletion that are entries: REMOVE_ADDRESS (address, Git entry), REMOVE_EDGE_STATUS,
        REMOVE_SETUP_STATUS (with it the row is closed and its name is free)."""
