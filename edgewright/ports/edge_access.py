"""Access for edges: registration tokens, registration, acceptance, credentials."""

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
"""32 bytes: the form in which every token and credential secret is stored."""


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
    """The answer to a registration. ``short_code``: the code that the script prints and `accept` shows."""

    cluster: UUID
    generation: int
    acceptance: Acceptance
    short_code: str


@dataclass(frozen=True)
class Credential:
    """One credential of a cluster, without its secret.

    Args:
        proven_at: its first authenticated use; None: never used.
        rotation_asked_at: when a successor was requested; None: none was.
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
    """The part of a cluster that decides what its credentials allow.

    Args:
        credentials: those that are not revoked, newest first.
    """

    name: str
    generation: int
    acceptance: Acceptance
    credentials: Sequence[Credential]


@dataclass(frozen=True)
class EdgeOrders(Holder):
    """A holder, with everything that decides what the centre tells the cluster's agent.

    Args:
        order, desired_revision: as the workflow published them.
        lease_seconds, check_in: from the cluster's settings.
        status_etag: revision of the *Edge cluster status* entry; None while there is none.
        resealing: the re-sealing under way, or the last one that found something unreadable.
        purge: a deletion also removes the kind SealedSecret and the sealing keys.
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
        """Issues a token for the present generation; earlier unspent tokens become invalid. Returns when it expires.

        Raises ``NotFound`` (``cluster_unknown``), ``Conflict`` (``not_ready``, ``removed``, ``deleting``).
        """

    async def token(self, token_id: str) -> RegistrationToken | None:
        """Returns the token with its present state (EXPIRED if it was not spent in time), or None."""

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

        The same UID may repeat the call, even with new secrets, which replace earlier unproven ones. Acceptance
        follows the policy of the cluster.

        Raises:
            Forbidden: ``token_wrong``, ``token_expired``, ``token_spent``, ``token_replaced``,
                ``token_bound_elsewhere``.
            Conflict: ``duplicate_identity`` (that UID is active as another cluster), ``removed``, ``deleting``.
        """

    async def answer(self, cluster: UUID, *, accepted: bool, actor: str) -> Acceptance:
        """Accepts an edge (activates its credentials) or rejects it (revokes them and frees the token's binding).

        ``Conflict`` code ``nothing_to_accept`` if nobody has registered; accepting twice gives the same answer.
        """

    async def credentials(self, cluster: UUID) -> Sequence[Credential]:
        """Returns all credentials of a cluster that are not revoked, newest first."""

    async def with_credentials(self, cluster: UUID) -> tuple[ClusterRow, Sequence[Credential]] | None:
        """Reads a cluster and its ``credentials`` consistently; None for a UUID that was never a cluster.

        Leaves out its ``edge_status`` and ``projection``, which may be large.
        """

    async def holder(self, cluster: UUID) -> Holder | None:
        """Reads less of the cluster, for frequent callers; None also for one without credentials."""

    async def orders(self, cluster: UUID) -> EdgeOrders | None:
        """Returns ``holder``, and everything that answers to the agent depend on."""

    async def record_use(self, credential: UUID) -> None:
        """Proves a credential: spends its token, and revokes the previous one of its role and generation.

        Does nothing if it is already proven.
        """

    async def add_rotated(self, cluster: UUID, role: Role, secret_sha256: Sha256, *, actor: str) -> CredentialState:
        """Registers the successor of a credential (pending until its first use); the current one stays valid.

        Repeating the same hash changes nothing. A second successor replaces an unproven first.
        """

    async def ask_rotation(
        self, cluster: UUID, roles: Collection[Role], *, actor: str, reason: str
    ) -> Sequence[Role]:
        """Requests successors of the active credentials of these roles; returns the roles that are newly requested.

        Args:
            reason: a sentence for the timeline.

        Raises ``NotFound`` (``cluster_unknown``), ``Conflict`` (``nothing_to_rotate``: no active credential of one of
        the roles; ``removed``, ``deleting``).
        """

    async def revoke(self, cluster: UUID, *, actor: str) -> int:
        """Revokes all credentials and unspent tokens at once; returns how many credentials."""

    async def suspend(self, fence: Fence) -> None:
        """Suspends active and pending credentials (central removal), and invalidates unspent tokens."""

    async def resume(self, fence: Fence) -> None:
        """Reactivates suspended credentials (recreation)."""

    async def retire(self, fence: Fence, *, said_goodbye: bool) -> None:
        """Ends a deletion: revokes credentials after a goodbye, or else limits them to detaching. Invalidates unspent
        tokens."""

    async def expire_tokens(self) -> int:
        """Marks expired tokens, including bound tokens of a pending acceptance; returns how many."""
