"""The ``clusters`` row: what is wanted of a cluster, and what its workflow last published."""

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
        spec: the configuration entry; for removed and deleted clusters, the last one.
        spec_etag: its revision; None while there is no entry.
        certificate_pem: the sealing certificate in use.
        proposed_pem: the certificate that a signal proposed and nobody has confirmed.
        projection: None also if it was left out.
        order, desired_revision: from the projection, even if that was left out.
        edge_status: the *Edge cluster status* entry; None also if it was left out.
        status_etag: its revision; None while there is no entry.
        resealing: the re-sealing under way, or the last one that found something unreadable.
        reach: None: the agent does not report it.
        proven_url: base URL of the centre that the agent was asked to use and now uses, also for its Git sources.
        asks_flux: the agent tells Flux to fetch as soon as there is a commit.
        closed_at: when its deletion finished; None: it has not.
        can_answer: whether the agent of the present generation has an active credential; None: not looked up.
        drift: what a put-back copy of the repository or the database has lost; empty: nothing.
        secrets_commit: the newest recorded commit of secrets; empty: none.
        rendered_commit: the head when the generated files were last verified; empty: not recorded.
        rendered_digest: digest of their inputs; None: there are none yet, or they must be rendered again.
        wanted: wanted versions of the components that bootstrap installed; empty for those that nobody upgraded.
        upgrading: the component whose upgrade is under way; None: none.
        anchor: UID of the anchor on the edge, which owns what bootstrap installed; None: the edge does not report it.
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
        """Differs after each change of configuration or settings; None while there is no configuration entry."""
        if self.spec_etag is None:
            return None
        return f"{self.spec_etag}-{hashlib.sha256(canonical_json(self.settings.entry())).hexdigest()[:12]}"


@dataclass(frozen=True)
class ClusterFilter:
    """Selects and sorts clusters. ``phase`` None: all but removed and deleted clusters.

    Args:
        labels: every given label must have the given value.
        name: part of the name, case-insensitive.
        synced, healthy: exactly this status; ``available`` False means any status other than True.
        sort: ``name``, ``phase``, ``created``, ``last_heard``; ``trouble``, ``blocked``, ``healthy``, ``synced`` or
            ``paused``: trouble first, then by name. A leading ``-`` reverses the order.
        after: the opaque ``next`` of the previous page.
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
    """A message to a workflow that takes effect once. Applied again by the same run, it changes nothing; by another
    run, it raises ``Conflict``, code ``verb_repeated``.

    Args:
        verb: ID of the message, the same in every run that receives it.
        run: the run that applies it.
    """

    verb: UUID
    run: str
