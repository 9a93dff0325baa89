"""What the gateway answers about clusters."""

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
    """One line of the list. ``waiting_for``: the sentence that waiting for the cluster shows; empty: for nothing.

    ``healthy``: `False`: something is wrong; `True`: nothing is, and the edge is heard; else `Unknown`.
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
    """A sealing certificate that came by a signal of Temporal's. Not in use; an admin may confirm it."""

    fingerprint: str
    not_after: datetime
    proposed_at: datetime


class Revisions(Answer):
    """Commits: the newest of the centre, and what the edge says it has applied."""

    desired: str | None
    observed: str | None


class LeaseBody(Answer):
    """When the edge was last heard."""

    state: LeaseState
    last_heard: datetime | None
    expires_at: datetime | None
    clock_offset_seconds: float | None


class CheckInBody(Answer):
    """When the edge calls. ``next_opening``: of a window; null: one is open."""

    windows: list[str]
    time_zone: str
    next_opening: datetime | None


class ReachBody(Answer):
    """Where the edge reaches the centre, as its agent says.

    ``ca_sha256``: of the certificates that it trusts the centre by; null: those of its machine. ``problem``: why it
    has not moved to where it was told to.
    """

    url: str
    ca_sha256: str | None
    problem: str | None


class Pause(Answer):
    paused: bool
    reason: str


class Deletion(Answer):
    """A deletion that was asked for.

    ``deadline``: when it stops waiting for the edge; null: it does not wait. ``message``: the same as a clause.
    ``purge``: the kind SealedSecret and the sealing keys are to go from the edge. ``edge``: what becomes of these, a
    sentence or two; empty where no edge was accepted.
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

    ``as_of``: when its workflow last published; null: not yet. ``versions``: of programs on the edge, as its agent
    reports them.
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
    """``as_of``: when that was known; null: the workflow itself said so just now."""

    ready: Literal[True] = True
    as_of: datetime | None = None


class Timeline(Answer):
    """What happened; each page in the order in which it happened.

    ``waiting``: steps that wait for their next attempt, and until when.
    ``next``: send it as ``after`` for the next page; null at the end.
    """

    items: list[Event]
    next: int | None
    waiting_for: str = ""
    waiting: list[StepRecord] = Field(default_factory=list)


class ResidueOfCluster(Answer):
    """What one deletion could not clean yet."""

    cluster: UUID
    name: str
    residue: list[Residue]


class ResidueList(Answer):
    items: list[ResidueOfCluster]


class Revoked(Answer):
    """How many credentials were revoked."""

    revoked: int
