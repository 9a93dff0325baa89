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
        """Takes one consistent reading; None for a UUID that was never a cluster.

        ``render_digest``, ``render_problem``, ``head``, ``observed_descends`` and ``delivery_problem`` are filled in
        by the activity.
        """

    async def check_fence(self, fence: Fence) -> None:
        """Raises ``Superseded`` unless the row still has the fence's generation and change."""

    async def begin_deletion(self, fence: Fence) -> None:
        """Marks the point of no return of a deletion; the workflow calls it before the removal commit."""

    async def project(self, cluster: UUID, projection: Projection, events: Sequence[NewEvent]) -> None:
        """Publishes a projection and its events in one transaction; repeating it does nothing.

        Raises:
            Superseded: another projection with this ``sequence`` or a higher one exists. The caller has forgotten it,
                because an earlier copy of Temporal was put back. Nothing is written.
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
        """Records that generated files may be committed, so that they are rendered again even if the wish is
        withdrawn meanwhile; fenced. ``record_rendering`` clears this."""

    async def record_rendering(
        self, fence: Fence, digest: str, sources: Sequence[tuple[UUID, UUID]], *, commit: CommitId
    ) -> None:
        """Remembers which entries (app, object) the generated files came from, and the commit that holds them."""

    async def recorded_commits(self, cluster: UUID, *, limit: int) -> Sequence[RecordedCommit]:
        """Returns the commits in the timeline, newest first; fewer than ``limit`` if there are no more."""

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
        """Records once that repository and database do not match, and makes a rendering due.

        Args:
            event: ID of the event, the same for the same finding.
            lost: values that must be entered again -> the commit that they were in.
            change: the change that the repository was written for; the row continues with a higher one, because a
                fence names only one wish.
            mended: the cluster was rendered again since.
            secrets_commit: from the row before the comparison. If another one is recorded by now, nothing is done: it
                may hold what seemed lost.

        Returns:
            Whether this is a new finding, or one that came back after a rendering.
        """

    async def lost_in_drift(self, cluster: UUID) -> Mapping[StoredPlace, CommitId]:
        """Returns the values that must be entered again because of drift -> the commit that they were in."""

    async def end_drift(self, cluster: UUID, *, back: Collection[StoredPlace], mended: bool) -> bool:
        """Removes values whose commit is ``back`` from those that must be entered again. Ends the drift with the last
        one, once the cluster is ``mended`` (rendered again). Returns whether the drift has ended."""

    async def record_reentry(
        self,
        fence: Fence,
        *,
        taken: Collection[SecretPlace] = (),
        there: Collection[SecretPlace] = (),
        secrets_commit: CommitId | None = None,
    ) -> bool:
        """Updates the list of what must be entered again: adds what was removed, and drops what is present.

        Args:
            taken: removed values; or the whole Secret if its file was unreadable.
            there: values and Secrets that are sealed for the present hardware.
            secrets_commit: see ``record_drift``.

        Returns:
            Whether it was done.
        """

    async def remove_central_entries(self, fence: Fence, step: StepName) -> None:
        """Removes the entries that belong to a deletion step: REMOVE_ADDRESS (address, Git entry),
        REMOVE_EDGE_STATUS, or REMOVE_SETUP_STATUS (which also closes the row and frees the name)."""
