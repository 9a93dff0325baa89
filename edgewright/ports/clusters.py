"""The ``clusters`` row: what is wanted, who asked for it, and what the workflow last published."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

from edgewright.domain.cluster import (
    Acceptance,
    CertificateFacts,
    ClusterSettings,
    ClusterSpec,
    ConditionStatus,
    Desired,
    Fence,
    Lease,
    Order,
    Phase,
    ProposedCertificate,
    StepName,
    Wanted,
    Workloads,
)
from edgewright.domain.edge_status import EdgeStatus
from edgewright.domain.ended import Purge
from edgewright.domain.projection import Projection
from edgewright.domain.reach import Reach
from edgewright.ports.audit import NewEvent, RecordedCommit
from edgewright.ports.config_store import ALWAYS, Entry, Precondition
from edgewright.ports.git_server import CommitId


@dataclass(frozen=True, slots=True)
class ClusterRow:
    """Everything the gateway shows of one cluster.

    Args:
        spec: the configuration entry; for removed and deleted clusters the last one.
        spec_etag: its revision; None while there is no entry.
        certificate_pem: the sealing certificate in use.
        proposed_pem: the one that a signal proposed and nobody has confirmed.
        projection: None also where it was left out.
        order, desired_revision: of the projection, also where that was left out.
        edge_status: the *Edge cluster status* entry; None also where it was left out.
        status_etag: its revision; None while there is no entry.
        resealing: the re-sealing under way, or the last one that has found something unreadable.
        reach: None: the agent has not said.
        proven_url: base URL of the centre that the agent was asked to use and does; its Git sources are there, too.
        asks_flux: the agent has Flux fetch as soon as there is news.
        closed_at: when its deletion has finished; None: it lives.
        can_answer: whether the agent of the present generation has an active credential; None: not asked for.
        drift: what a repository or a database that was put back has lost; empty: nothing.
    """

    uuid: UUID
    generation: int
    change: int
    commissioning: int
    desired: Desired
    closed: bool
    spec: ClusterSpec
    spec_etag: str | None
    settings: ClusterSettings
    created_at: datetime
    created_by: str
    acceptance: Acceptance = Acceptance.NONE
    short_code: str | None = None
    paused: bool = False
    paused_reason: str = ""
    projection: Projection | None = None
    projected_at: datetime | None = None
    order: Order = Order.NONE
    desired_revision: str | None = None
    lease: Lease = Lease()
    certificate: CertificateFacts | None = None
    certificate_pem: str | None = None
    proposed: ProposedCertificate | None = None
    proposed_pem: str | None = None
    edge_status: EdgeStatus | None = None
    status_etag: str | None = None
    observed_revision: str | None = None
    must_reenter: Sequence[str] = ()
    resealing: UUID | None = None
    force: bool = False
    workloads: Workloads = Workloads.REMOVE
    deadline: datetime | None = None
    purge: Purge = Purge()
    reach: Reach | None = None
    proven_url: str | None = None
    asks_flux: bool = False
    closed_at: datetime | None = None
    can_answer: bool | None = None
    drift: str = ""


@dataclass(frozen=True)
class ClusterFilter:
    """What a list shows. ``phase`` None: all but removed and deleted ones.

    Args:
        labels: every given label must have the given value.
        name: part of the name, whatever the case.
        synced, healthy: the status itself; ``available`` False means any other than True.
        sort: ``name``, ``phase``, ``created``, ``last_heard``; ``trouble``, ``blocked``, ``healthy``, ``synced`` or
            ``paused``: trouble first, then by name. With a leading ``-`` downwards.
        after: the opaque ``next`` of the page before.
        limit: 1 to 500.
    """

    phase: Phase | None = None
    ready: bool | None = None
    available: bool | None = None
    blocked: bool | None = None
    synced: ConditionStatus | None = None
    healthy: ConditionStatus | None = None
    paused: bool | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    sort: str = "name"
    limit: int = 100
    after: str | None = None


@dataclass(frozen=True)
class ClusterSummary:
    """One line of a list."""

    uuid: UUID
    name: str
    phase: Phase
    ready: bool
    available: str
    labels: Mapping[str, str]
    generation: int
    created_at: datetime
    last_heard: datetime | None
    waiting_for: str
    blocked: bool
    synced: ConditionStatus
    healthy: ConditionStatus
    paused: bool
    deleted_at: datetime | None = None


@dataclass(frozen=True)
class ClusterPage:
    items: Sequence[ClusterSummary]
    next: str | None


@dataclass(frozen=True)
class Written:
    """The outcome of writing a configuration. ``created``: the cluster is new; ``recreated``: it was removed."""

    row: ClusterRow
    entry: Entry
    created: bool
    recreated: bool
    changed: bool


@dataclass(frozen=True)
class Once:
    """A message to a workflow that is applied once: again by the same run it changes nothing, by another run it is a
    ``Conflict``, code ``verb_repeated``.

    Args:
        verb: the same for the same message in every run that gets it.
        run: the run that applies it.
    """

    verb: UUID
    run: str


class Clusters(Protocol):
    """Each writing call is one transaction with its audit event, and raises ``change``.

    The doors (REST, Config Store, Temporal signals) all end in these calls. ``NotFound`` (code
    ``cluster_unknown``) for a UUID that was never a cluster, ``Gone`` (code ``cluster_deleted``) for one whose
    deletion has finished.
    """

    # --- what operators want -------------------------------------------------------------------------

    async def write_configuration(
        self,
        cluster: UUID,
        body: Mapping[str, Any],
        *,
        actor: str,
        settings: ClusterSettings | None = None,
        precondition: Precondition = ALWAYS,
        create_object: bool = False,
    ) -> Written:
        """Writes the configuration entry: creates, changes or recreates the cluster.

        Args:
            body: checked against the JSON Schema of the Application.
            settings: written to *Edgewright cluster settings* in the same transaction, if given.
            create_object: registers the object under class *Edge cluster* (REST does, the Config Store does not).

        Raises:
            Invalid: ``name_invalid``, ``schema_violation``, ``values_undeliverable``.
            Conflict: ``name_taken``; ``name_immutable`` (a cluster keeps its name, also when removed);
                ``namespace_immutable`` (an edge of the present generation is attached in another one);
                ``deleting`` (a deletion is under way); ``wrong_class``.
            NotFound: ``object_unknown`` unless ``create_object``; ``chart_unknown``: ``chart`` names no template
                (Invalid, ``where`` ``/chart``).
            PreconditionFailed.
        """

    async def write_settings(
        self, cluster: UUID, body: Mapping[str, Any], *, actor: str, precondition: Precondition = ALWAYS
    ) -> Entry:
        """Writes the settings entry of a cluster."""

    async def request_removal(self, cluster: UUID, *, actor: str, precondition: Precondition = ALWAYS) -> bool:
        """Central removal: deletes the configuration entry. False if there was no entry."""

    async def request_deletion(
        self,
        cluster: UUID,
        *,
        actor: str,
        force: bool = False,
        deadline: timedelta | None = None,
        workloads: Workloads = Workloads.REMOVE,
        purge: bool = False,
        once: Once | None = None,
    ) -> ClusterRow:
        """Records ``desired = deleted`` and deletes the entry. Again: the same deletion (``force`` may be added,
        a deadline may only be brought forward; None: 24 h for a new deletion, unchanged for one under way).
        Suspended credentials are let in again, to detach with. ``once``: see there.

        ``purge``: the kind SealedSecret and the sealing keys are to go from the edge. ``Invalid`` code
        ``purge_impossible`` with ``force`` or kept workloads; ``Conflict`` code ``purge_impossible`` where no edge
        can answer, ``purge_too_late`` once a deletion without it has begun."""

    async def undelete(self, cluster: UUID, *, actor: str) -> ClusterRow:
        """Takes a deletion back while no removal commit was begun; ``Conflict`` code ``too_late`` after that.

        Puts the configuration entry back.
        """

    async def begin_deletion(self, fence: Fence) -> None:
        """Marks the point of no return of a deletion; the workflow calls it before the removal commit."""

    async def request_recreation(
        self,
        cluster: UUID,
        *,
        actor: str,
        new_hardware: bool,
        changes: Mapping[str, Any] | None = None,
        request: UUID | None = None,
    ) -> ClusterRow:
        """Removes and commissions anew in one transaction; merge patch ``changes`` applied to the entry.

        ``request`` names the wish: one that has happened before does not happen again.

        For new hardware also: generation + 1, credentials of the old generation revoked, tokens replaced, edge
        status, certificate, lease and acceptance cleared. ``Conflict`` code ``deleting`` during a deletion,
        ``namespace_immutable`` on the same hardware.
        """

    async def set_paused(
        self,
        cluster: UUID,
        *,
        paused: bool,
        reason: str,
        actor: str,
        seen: int | None = None,
        once: Once | None = None,
    ) -> None:
        """Records that commits are paused, or go on.

        ``seen`` is the ``change`` of the row when that was wished for: ``Conflict`` code ``overtaken`` if it was
        paused or resumed since. So a wish that arrives late, or once more, undoes nothing that was wished later.
        ``once``: see there.
        """

    # --- reading ------------------------------------------------------------------------------------

    async def get(self, cluster: UUID) -> ClusterRow | None:
        """The row, also of removed and deleted clusters; None for a UUID that was never a cluster."""

    async def find(self, name: str) -> UUID | None:
        """The cluster with that name (whatever the case) whose deletion has not finished, or None."""

    async def name_of(self, cluster: UUID) -> str | None:
        """The name of a cluster, also of a removed or deleted one; None for a UUID that was never a cluster."""

    async def page(self, filter_: ClusterFilter) -> ClusterPage:
        """A page of summaries; ``Invalid`` for a bad ``sort`` or ``after``."""

    async def unfinished(self, *, limit: int = 1000) -> Sequence[UUID]:
        """Clusters whose row and projection differ: change not done, lease epoch not taken, staged secrets."""

    async def underway(self) -> Sequence[UUID]:
        """Clusters whose workflow has published that a step of theirs is not finished, the longest unpublished first.

        Their row and projection need not differ: a workflow that has forgotten the step is found in no other way. Nor
        is a deletion that has finished, and whose workflow was forgotten before it could tell so.
        """

    async def open_clusters(self) -> Sequence[UUID]:
        """All clusters whose deletion has not finished: each has a running workflow."""

    async def using_template(self, app: UUID, object_: UUID) -> Sequence[UUID]:
        """Clusters whose generated files were rendered with an entry, and those that nothing was rendered for yet:
        the entry may be what they are blocked by."""

    # --- the workflow's side ------------------------------------------------------------------------

    async def read_wanted(self, cluster: UUID) -> Wanted | None:
        """One consistent reading; None for a UUID that was never a cluster.

        ``render_digest``, ``render_problem``, ``head``, ``observed_descends`` and ``delivery_problem`` are filled in
        by the activity.
        """

    async def check_fence(self, fence: Fence) -> None:
        """Raises ``Superseded`` unless the row still has the fence's generation and change."""

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

    async def record_rendering(self, fence: Fence, digest: str, sources: Sequence[tuple[UUID, UUID]]) -> None:
        """Remembers which entries (app, object) the generated files came from."""

    async def recorded_commits(self, cluster: UUID, *, limit: int) -> Sequence[RecordedCommit]:
        """What the timeline says has been committed, newest first; fewer than ``limit``: it tells of no more."""

    async def record_drift(
        self,
        cluster: UUID,
        message: str,
        *,
        event: UUID,
        lost: Mapping[str, CommitId] | None = None,
        change: int = 0,
        mended: bool = False,
    ) -> bool:
        """Tells once that repository and database do not belong together, and makes a rendering due.

        Args:
            event: ID of the event, the same for the same finding.
            lost: ``namespace/name/key`` of values that must be entered again -> the commit that they were in.
            change: what the repository was written for; the row goes on with a higher one, for a fence names one
                wish only.
            mended: the cluster was rendered again since.

        Returns:
            Whether it is told for the first time, or has come again after a rendering.
        """

    async def lost_in_drift(self, cluster: UUID) -> Mapping[str, CommitId]:
        """The values that drift has made to be entered again -> the commit that they were in."""

    async def end_drift(self, cluster: UUID, *, back: Collection[str], mended: bool) -> bool:
        """Takes values (``namespace/name/key``) whose commit is ``back`` from what must be entered again; ends the
        drift with the last of them, once the cluster is ``mended``: rendered again. Returns whether it has ended."""

    async def record_reentry(self, fence: Fence, *, taken: Collection[str] = (), there: Collection[str] = ()) -> None:
        """Adds to the list of what must be entered again what was taken away, and takes from it what is there.

        Args:
            taken: ``namespace/name/key``; or ``namespace/name``, of a file that nobody could read.
            there: the same; sealed for the present hardware.
        """

    async def remove_central_entries(self, fence: Fence, step: StepName) -> None:
        """The parts of a deletion that are entries: REMOVE_ADDRESS (address, Git entry), REMOVE_EDGE_STATUS,
        REMOVE_SETUP_STATUS (with it the row is closed and its name is free)."""
