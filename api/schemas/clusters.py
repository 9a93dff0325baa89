"""Bodies of answers about clusters."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from api.schemas.base import Answer
from edgewright.domain.cluster import (
    Acceptance,
    AcceptancePolicy,
    Condition,
    ConditionStatus,
    Desired,
    LeaseState,
    Phase,
    Resealing,
    Workloads,
)
from edgewright.domain.projection import Residue, StepRecord
from edgewright.ports.audit import Event


class SummaryBody(Answer):
    """One line of the list. ``waiting_for``: a sentence on what the cluster waits for; empty: nothing.

    ``healthy``: `True`: nothing is wrong, and heartbeats arrive; `False`: something is wrong; otherwise `Unknown`.
    """

    uuid: UUID
    name: str
    phase: Phase
    ready: bool
    available: ConditionStatus
    blocked: bool
    synced: ConditionStatus
    healthy: ConditionStatus
    paused: bool
    labels: dict[str, str]
    generation: int
    created_at: datetime
    last_heard: datetime | None
    waiting_for: str
    deleted_at: datetime | None = None


class ClusterList(Answer):
    """``next``: send it as ``after`` for the next page; null at the end."""

    items: list[SummaryBody]
    next: str | None


class Certificate(Answer):
    """The sealing certificate in use. ``fingerprint``: SHA-256 of the DER, hexadecimal."""

    fingerprint: str
    not_before: datetime
    not_after: datetime
    taken_at: datetime


class CertificateProposed(Answer):
    """A sealing certificate that arrived by a Temporal signal. It is not in use until an admin confirms it."""

    fingerprint: str
    not_after: datetime
    proposed_at: datetime


class Revisions(Answer):
    """Commits: the newest one of the centre, and the one that the edge reports as applied."""

    desired: str | None
    observed: str | None


class LeaseBody(Answer):
    """The edge's lease, and when it last called."""

    state: LeaseState
    last_heard: datetime | None
    expires_at: datetime | None
    clock_offset_seconds: float | None


class CheckInBody(Answer):
    """When the edge calls. ``next_opening``: when the next window opens; null: one is open."""

    windows: list[str]
    time_zone: str
    next_opening: datetime | None


class ReachBody(Answer):
    """Where the edge reaches the centre, as its agent reports it.

    ``ca_sha256``: SHA-256 of the certificates that it uses to trust the centre; null: those of its machine.
    ``problem``: why it has not moved to the URL that it was told.
    """

    url: str
    ca_sha256: str | None
    problem: str | None


class Pause(Answer):
    paused: bool
    reason: str


class Deletion(Answer):
    """A requested deletion.

    ``deadline``: when it stops waiting for the edge; null: it does not wait. ``message``: the same in words.
    ``purge``: whether the kind SealedSecret and the sealing keys are to be removed from the edge. ``edge``: what
    happens to them, in a sentence or two; empty if no edge was accepted.
    """

    force: bool
    workloads: Workloads
    deadline: datetime | None
    message: str = ""
    purge: bool = False
    edge: str = ""


class Links(Answer):
    """``repository``: of the driving repository, for git clone; ``temporal_ui``: the workflow's page."""

    repository: str
    temporal_ui: str | None


class ClusterBody(Answer):
    """Everything about one cluster.

    ``as_of``: when its workflow last published; null: not yet. ``versions``: versions of programs on the edge, as its
    agent reports them.
    """

    uuid: UUID
    name: str
    namespace: str
    chart: UUID | None
    bare: bool
    values: dict[str, Any]
    labels: dict[str, str]
    accept: AcceptancePolicy
    lease_seconds: int
    check_in: CheckInBody | None = None
    generation: int
    desired: Desired
    phase: Phase
    ready: bool
    waiting_for: str
    acceptance: Acceptance
    short_code: str | None
    pause: Pause
    conditions: list[Condition]
    steps: list[StepRecord]
    hosts: list[dict[str, Any]]
    versions: dict[str, str] = Field(default_factory=dict)
    certificate: Certificate | None
    certificate_proposed: CertificateProposed | None = None
    revisions: Revisions
    lease: LeaseBody
    reach: ReachBody | None = None
    residue: list[Residue]
    must_reenter: list[str]
    resealing: Resealing | None = None
    deletion: Deletion | None
    links: Links
    created_at: datetime
    created_by: str
    as_of: datetime | None


class Ready(Answer):
    """``as_of``: when this was published; null: the workflow itself has just answered."""

    ready: Literal[True] = True
    as_of: datetime | None = None


class Timeline(Answer):
    """Events of a cluster; each page is in the order in which they happened.

    ``waiting``: steps that wait for their next attempt, and until when.
    ``next``: send it as ``after`` for the next page; null at the end.
    """

    items: list[Event]
    next: int | None
    waiting_for: str = ""
    waiting: list[StepRecord] = Field(default_factory=list)


class ResidueOfCluster(Answer):
    """What one deletion could not clean up yet."""

    cluster: UUID
    name: str
    residue: list[Residue]


class ResidueList(Answer):
    items: list[ResidueOfCluster]


class Revoked(Answer):
    """How many credentials were revoked."""

    revoked: int
