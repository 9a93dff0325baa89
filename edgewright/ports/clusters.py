"""The ``clusters`` row: what is wanted, who asked for it, and what the workflow last published."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from edgewright.domain.cluster import (
    Acceptance,
    CertificateFacts,
    ClusterSettings,
    ClusterSpec,
    ConditionStatus,
    Desired,
    Lease,
    Order,
    Phase,
    ProposedCertificate,
    Workloads,
)
from edgewright.domain.edge_status import EdgeStatus
from edgewright.domain.ended import Purge
from edgewright.domain.json import canonical_json
from edgewright.domain.kubernetes_names import StoredPlace
from edgewright.domain.projection import Projection
from edgewright.domain.reach import Reach
from edgewright.domain.upgrades import Component, WantedComponents
from edgewright.ports.config_store import Entry
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
        secrets_commit: the newest commit of secrets that is recorded; empty: none is.
        rendered_commit: the head when the generated files were last made sure of; empty: not recorded.
        rendered_digest: of what they were made from; None: they are not there yet, or have to be made anew.
        wanted: versions of what bootstrap has installed, as far as somebody wants one.
        upgrading: the component whose upgrade is under way; None: none is.
        anchor: UID, on the edge, of what owns what bootstrap has installed there; None: the edge does not say.
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
    must_reenter: Sequence[StoredPlace] = ()
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
    secrets_commit: CommitId = ""
    rendered_commit: CommitId = ""
    rendered_digest: str | None = None
    wanted: WantedComponents = WantedComponents()
    upgrading: Component | None = None
    anchor: str | None = None

    @property
    def revision(self) -> str | None:
        """What changes with each change of configuration or settings; None while there is no configuration entry."""
        if self.spec_etag is None:
            return None
        return f"{self.spec_etag}-{hashlib.sha256(canonical_json(self.settings.entry())).hexdigest()[:12]}"


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
    available: ConditionStatus
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
