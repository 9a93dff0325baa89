"""How an edge gets in: registration tokens, registration, acceptance, credentials."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from edgewright.domain.check_in import CheckIn
from edgewright.domain.cluster import (
    Acceptance,
    CredentialState,
    Desired,
    Fence,
    Order,
    Role,
    TokenState,
    Workloads,
)
from edgewright.ports.clusters import ClusterRow

Sha256 = bytes
"""32 bytes: how every token and credential secret is stored."""


@dataclass(frozen=True)
class RegistrationToken:
    """One token, without its secret."""

    id: str
    cluster: UUID
    generation: int
    state: TokenState
    expires_at: datetime
    secret_sha256: Sha256
    bound_uid: str | None = None


@dataclass(frozen=True)
class Registration:
    """The answer to a registration. ``short_code``: what the script prints and `accept` shows."""

    cluster: UUID
    generation: int
    acceptance: Acceptance
    short_code: str


@dataclass(frozen=True)
class Credential:
    """One credential of a cluster, without its secret.

    Args:
        proven_at: its first authenticated use; None: never used.
        rotation_asked_at: since when a successor of it is wanted; None: none is.
    """

    id: UUID
    cluster: UUID
    generation: int
    role: Role
    state: CredentialState
    secret_sha256: Sha256
    created_at: datetime
    proven_at: datetime | None
    rotation_asked_at: datetime | None = None


@dataclass(frozen=True)
class Holder:
    """A cluster, as far as it decides what its credentials are worth.

    Args:
        credentials: those that are not revoked, newest first.
    """

    name: str
    generation: int
    acceptance: Acceptance
    credentials: Sequence[Credential]


@dataclass(frozen=True)
class EdgeOrders(Holder):
    """The same, as far as it also decides what the agent of the cluster is told.

    Args:
        order, desired_revision: what the workflow has published.
        lease_seconds, check_in: of the cluster's settings.
        status_etag: revision of the *Edge cluster status* entry; None while there is none.
        resealing: the re-sealing under way, or the last one that has found something unreadable.
        purge: a deletion takes what seals from the edge.
        closed: the deletion has finished.
    """

    desired: Desired
    order: Order
    desired_revision: str | None
    lease_seconds: int
    check_in: CheckIn | None
    status_etag: str | None
    resealing: UUID | None
    workloads: Workloads
    purge: bool
    closed: bool


class EdgeAccess(Protocol):
    """Every writing call is one transaction with its audit event."""

    async def issue_token(
        self, cluster: UUID, *, token_id: str, secret_sha256: Sha256, expires_in: timedelta, actor: str
    ) -> datetime:
        """Issues a token of the present generation; earlier unspent ones die. Returns when it expires.

        Raises ``NotFound`` (``cluster_unknown``), ``Conflict`` (``not_ready``, ``removed``, ``deleting``).
        """

    async def token(self, token_id: str) -> RegistrationToken | None:
        """The token with its state as of now (EXPIRED when its time has passed unspent), or None."""

    async def register(
        self,
        *,
        token_id: str,
        secret_sha256: Sha256,
        kube_system_uid: str,
        kubernetes_version: str,
        flux_sha256: Sha256,
        agent_sha256: Sha256,
    ) -> Registration:
        """Binds the token to the UID in one conditional UPDATE and stores both credentials; repeatable.

        The same UID may repeat, also with new secrets (the earlier unproven ones are replaced). Acceptance
        follows the policy of the cluster.

        Raises:
            Forbidden: ``token_wrong``, ``token_expired``, ``token_spent``, ``token_replaced``,
                ``token_bound_elsewhere``.
            Conflict: ``duplicate_identity`` (that UID is active as another cluster), ``removed``, ``deleting``.
        """

    async def answer(self, cluster: UUID, *, accepted: bool, actor: str) -> Acceptance:
        """Accepts (pending credentials become active) or rejects (credentials revoked, the binding is freed).

        ``Conflict`` code ``nothing_to_accept`` when nobody has registered; accepting twice is the same answer.
        """

    async def credentials(self, cluster: UUID) -> Sequence[Credential]:
        """All credentials of a cluster that are not revoked, newest first."""

    async def with_credentials(self, cluster: UUID) -> tuple[ClusterRow, Sequence[Credential]] | None:
        """A cluster and its ``credentials``, as they were at one moment; None for a UUID that was never a cluster.

        Its ``edge_status`` and ``projection`` are left out: they may be large.
        """

    async def holder(self, cluster: UUID) -> Holder | None:
        """The same with little of the cluster, for who asks all the time; None also for one without credentials."""

    async def orders(self, cluster: UUID) -> EdgeOrders | None:
        """``holder``, and what each answer to the agent depends on."""

    async def record_use(self, credential: UUID) -> None:
        """Proves a credential: spends its token, and revokes the older one of its role and generation.

        Costs nothing when it is proven already.
        """

    async def add_rotated(self, cluster: UUID, role: Role, secret_sha256: Sha256, *, actor: str) -> CredentialState:
        """Registers the successor of a credential (pending until its first use); the current one stays valid.

        Repeating the same hash changes nothing. A second successor replaces an unproven first.
        """

    async def ask_rotation(
        self, cluster: UUID, roles: Collection[Role], *, actor: str, reason: str
    ) -> Sequence[Role]:
        """Wants successors of the active credentials of these roles; returns the roles of which none was wanted yet.

        Args:
            reason: a sentence for the timeline.

        Raises ``NotFound`` (``cluster_unknown``), ``Conflict`` (``nothing_to_rotate``: no active credential of one of
        the roles; ``removed``, ``deleting``).
        """

    async def revoke(self, cluster: UUID, *, actor: str) -> int:
        """Revokes all credentials and unspent tokens at once; returns how many credentials."""

    async def suspend(self, fence: Fence) -> None:
        """Active and pending credentials become suspended (central removal), unspent tokens die."""

    async def resume(self, fence: Fence) -> None:
        """Suspended credentials become active again (recreation)."""

    async def retire(self, fence: Fence, *, said_goodbye: bool) -> None:
        """End of a deletion: revoked after a goodbye, else detach-only; unspent tokens die."""

    async def expire_tokens(self) -> int:
        """Marks tokens whose time has passed; returns how many. Bound tokens of a pending acceptance too."""
