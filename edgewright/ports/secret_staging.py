"""Ciphertext on its way to a repository; a row is also the idempotency record of its request."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from edgewright.domain.kubernetes_names import SecretKey, SecretPlace
from edgewright.domain.secret_template import TemplateChange


class StagedState(StrEnum):
    STAGED = "staged"
    COMMITTED = "committed"
    SUPERSEDED = "superseded"
    REFUSED = "refused"


REFUSED_BY_A_WISH = frozenset({"deleting", "new_hardware", "removed"})
"""Refusal codes of wishes, which increment the ``change`` of the cluster's row in the same transaction."""


@dataclass(frozen=True)
class StagedChange:
    """A change to one key, or to a Secret without its values. ``ciphertext`` None: the key is deleted.

    Args:
        request: the request that it belongs to; all changes of one request are committed together.
        creates_namespace: also create the namespace on the edge.
        replaces: SHA-256, hexadecimal, of the ciphertext that a re-sealed value replaces; such a change gives way to
            every other change of its key. None: it replaces any value.
        template: other changes to its Secret; only set in the first change of a Secret in a request.
    """

    request: UUID
    cluster: UUID
    generation: int
    place: SecretPlace
    ciphertext: str | None
    fingerprint: str | None
    sealed_at: datetime
    actor: str
    sequence: int = 0
    state: StagedState = StagedState.STAGED
    commit: str | None = None
    refusal_code: str = ""
    refusal: str = ""
    replaces: str | None = None
    template: TemplateChange | None = None
    creates_namespace: bool = False

    @property
    def deletes(self) -> bool:
        return self.ciphertext is None and isinstance(self.place, SecretKey)


@dataclass(frozen=True)
class PendingChanges:
    """The oldest changes that wait for a commit.

    Args:
        changes: oldest first; whole requests only, and more than the limit only if they belong to one request.
        more: whether more may be waiting.
    """

    changes: Sequence[StagedChange]
    more: bool


class SecretStaging(Protocol):
    async def stage(self, changes: Sequence[StagedChange]) -> Sequence[StagedChange]:
        """Writes the changes of one request. For a known request, returns the stored changes, even if the cluster
        accepts no more secrets.

        Raises ``Conflict`` (``removed``, ``deleting``) and ``Superseded`` if the row does not accept secrets of that
        generation.
        """

    async def request(self, request: UUID) -> Sequence[StagedChange]:
        """Returns all changes of one request, in order; empty if it is unknown."""

    async def pending(self, cluster: UUID, *, limit: int = 500) -> PendingChanges:
        """Returns staged changes of the present generation that are in no commit yet."""

    async def committed(self, requests: Sequence[UUID], commit: str, *, unless_refused: bool = False) -> None:
        """Records the commit on all staged rows of the requests, drops their ciphertext, and writes the audit
        events of the changes in the same transaction (deterministic IDs). The cluster has news from then on.

        Args:
            unless_refused: skips refused changes; otherwise the commit overrides the refusal.
        """

    async def give_way(self, changes: Sequence[StagedChange]) -> None:
        """Drops re-sealed values, one by one, if the value that they replace was changed meanwhile."""

    async def refuse(self, request: UUID, code: str, reason: str) -> None:
        """Refuses a request that can never be committed."""


class EndedRequests(Protocol):
    async def forget(self) -> int:
        """Removes requests without staged changes once they are as old as idempotency keys can get. Returns how many
        changes it removed, a bounded number. The same request counts as a new one from then on."""
