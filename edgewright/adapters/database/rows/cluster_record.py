"""One row of ``clusters`` as a type, and what may be changed of it.

What a column means stands with the type in ``ports`` or ``domain`` that it is read into.
"""

from datetime import datetime
from typing import NamedTuple, TypedDict
from uuid import UUID

from edgewright.domain.cluster import (
    Acceptance,
    ConditionStatus,
    Desired,
    LeaseState,
    Phase,
    StepName,
    StepState,
    Workloads,
)
from edgewright.domain.json import JsonObject
from edgewright.domain.kubernetes_names import StoredPlace
from edgewright.domain.upgrades import Component
from edgewright.ports.git_server import CommitId


class ClusterRecord(NamedTuple):
    """In the order of the columns, which a test compares; made of a row with ``_make``."""

    uuid: UUID
    name: str
    name_key: str
    generation: int
    change: int
    commissioning: int
    desired: Desired
    closed_at: datetime | None
    created_at: datetime
    created_by: str
    phase: Phase
    ready: bool
    available: ConditionStatus
    waiting_for: str
    projection_sequence: int
    change_done: int
    lease_epoch_taken: int
    projected_at: datetime | None
    lease_state: LeaseState
    lease_epoch: int
    lease_seconds: int
    last_heard: datetime | None
    lease_expires_at: datetime | None
    clock_offset: float | None
    observed_revision: str | None
    edge_reported_at: datetime | None
    news_at: datetime | None
    acceptance: Acceptance
    short_code: str | None
    kube_system_uid: str | None
    kubernetes_version: str | None
    paused: bool
    paused_reason: str
    force: bool
    workloads: Workloads
    deadline: datetime | None
    desired_before: Desired | None
    deletion_begun_at: datetime | None
    inventory_empty_at: datetime | None
    detached_at: datetime | None
    certificate_fingerprint: str | None
    certificate_not_before: datetime | None
    certificate_not_after: datetime | None
    certificate_taken_at: datetime | None
    certificate_problem: str | None
    rendered_digest: str | None
    labels: dict[str, str]
    must_reenter: list[StoredPlace]
    settings: JsonObject
    spec: JsonObject
    certificate_pem: str | None
    failing: StepState | None
    failing_step: StepName | None
    underway: bool
    resealing: UUID | None
    reseal_due_at: datetime | None
    nonce: str | None
    nonce_breaks: int
    nonce_broken_at: datetime | None
    forked_at: datetime | None
    centre_url: str | None
    centre_problem: str | None
    proven_url: str | None
    centre_ca: str | None
    blocked: bool
    synced: ConditionStatus
    healthy: ConditionStatus
    trouble: int
    proposed_fingerprint: str | None
    proposed_not_after: datetime | None
    proposed_at: datetime | None
    proposed_pem: str | None
    event_room: float | None
    event_room_at: datetime | None
    events_omitted: int
    drift: str | None
    drift_lost: dict[StoredPlace, CommitId] | None
    asks_flux: bool | None
    asks_flux_since: datetime | None
    purge: bool | None
    purged: bool | None
    purge_problem: str | None
    secrets_commit: CommitId | None
    rendered_commit: CommitId | None
    components: JsonObject | None
    upgrading: Component | None
    anchor: str | None


class ClusterChanges(TypedDict, total=False):
    """Columns that are to be changed: those of the record but its key. Types cannot be derived from each other here;
    a test compares the two."""

    name: str
    name_key: str
    generation: int
    change: int
    commissioning: int
    desired: Desired
    closed_at: datetime | None
    created_at: datetime
    created_by: str
    phase: Phase
    ready: bool
    available: ConditionStatus
    waiting_for: str
    projection_sequence: int
    change_done: int
    lease_epoch_taken: int
    projected_at: datetime | None
    lease_state: LeaseState
    lease_epoch: int
    lease_seconds: int
    last_heard: datetime | None
    lease_expires_at: datetime | None
    clock_offset: float | None
    observed_revision: str | None
    edge_reported_at: datetime | None
    news_at: datetime | None
    acceptance: Acceptance
    short_code: str | None
    kube_system_uid: str | None
    kubernetes_version: str | None
    paused: bool
    paused_reason: str
    force: bool
    workloads: Workloads
    deadline: datetime | None
    desired_before: Desired | None
    deletion_begun_at: datetime | None
    inventory_empty_at: datetime | None
    detached_at: datetime | None
    certificate_fingerprint: str | None
    certificate_not_before: datetime | None
    certificate_not_after: datetime | None
    certificate_taken_at: datetime | None
    certificate_problem: str | None
    rendered_digest: str | None
    labels: dict[str, str]
    must_reenter: list[StoredPlace]
    settings: JsonObject
    spec: JsonObject
    certificate_pem: str | None
    failing: StepState | None
    failing_step: StepName | None
    underway: bool
    resealing: UUID | None
    reseal_due_at: datetime | None
    nonce: str | None
    nonce_breaks: int
    nonce_broken_at: datetime | None
    forked_at: datetime | None
    centre_url: str | None
    centre_problem: str | None
    proven_url: str | None
    centre_ca: str | None
    blocked: bool
    synced: ConditionStatus
    healthy: ConditionStatus
    trouble: int
    proposed_fingerprint: str | None
    proposed_not_after: datetime | None
    proposed_at: datetime | None
    proposed_pem: str | None
    event_room: float | None
    event_room_at: datetime | None
    events_omitted: int
    drift: str | None
    drift_lost: dict[StoredPlace, CommitId] | None
    asks_flux: bool | None
    asks_flux_since: datetime | None
    purge: bool | None
    purged: bool | None
    purge_problem: str | None
    secrets_commit: CommitId | None
    rendered_commit: CommitId | None
    components: JsonObject | None
    upgrading: Component | None
    anchor: str | None


NO_PURGE: ClusterChanges = {"purge": None, "purged": None, "purge_problem": None}
NOTHING_WANTED: ClusterChanges = {"components": None, "upgrading": None}
NOTHING_PROPOSED: ClusterChanges = {
    "proposed_fingerprint": None,
    "proposed_not_after": None,
    "proposed_at": None,
    "proposed_pem": None,
}

HARDWARE_UNKNOWN: ClusterChanges = {
    "acceptance": Acceptance.NONE,
    "short_code": None,
    "kube_system_uid": None,
    "kubernetes_version": None,
    "lease_state": LeaseState.NEVER,
    "last_heard": None,
    "lease_expires_at": None,
    "clock_offset": None,
    "observed_revision": None,
    "edge_reported_at": None,
    "inventory_empty_at": None,
    "detached_at": None,
    "certificate_fingerprint": None,
    "certificate_not_before": None,
    "certificate_not_after": None,
    "certificate_taken_at": None,
    "certificate_problem": None,
    "certificate_pem": None,
    **NOTHING_PROPOSED,
    "resealing": None,
    "reseal_due_at": None,
    "nonce": None,
    "nonce_breaks": 0,
    "nonce_broken_at": None,
    "forked_at": None,
    "centre_url": None,
    "centre_ca": None,
    "centre_problem": None,
    "proven_url": None,
    "asks_flux": None,
    "asks_flux_since": None,
    **NO_PURGE,
    **NOTHING_WANTED,
    "anchor": None,
}
"""What a row says of hardware that nobody has heard of: that of a new cluster, or of a new generation."""
