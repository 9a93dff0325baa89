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
"""Refusal codes of wishes, which raise the ``change`` of the cluster's row in the same transaction."""


@dataclass(frozen=True)
class StagedChange:
    """One change of one key, or of a Secret besides its values. ``ciphertext`` None: the key is deleted.

    Args:
        request: the request that it belongs to; several changes of one request are committed together.
        creates_namespace: the edge is to get the namespace, too.
        replaces: SHA-256, hexadecimal, of the ciphertext that this one is to replace: a re-sealed value, which gives
            way to every other change of its key. None: it replaces whatever is there.
        template: what else changes of its Secret; of the changes of one Secret in a request, the first one has it.
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
        changes: oldest first; whole requests only, and more than the limit only if they are of one request.
        more: whether others may wait.
    """

    changes: Sequence[StagedChange]
    more: bool


class SecretStaging(Protocol):
    async def stage(self, changes: Sequence[StagedChange]) -> Sequence[StagedChange]:
        """Writes the changes of one request; if the request is there already, returns what is there, also where the
        cluster takes no more secrets.

        Raises ``Conflict`` (``removed``, ``deleting``) and ``Superseded`` when the row does not take secrets of
        that generation.
        """

    async def request(self, request: UUID) -> Sequence[StagedChange]:
        """All changes of one request, in order; empty if unknown."""

    async def pending(self, cluster: UUID, *, limit: int = 500) -> PendingChanges:
        """Staged changes of the present generation that no commit holds."""

    async def committed(self, requests: Sequence[UUID], commit: str, *, unless_refused: bool = False) -> None:
        """Records the commit on all staged rows of the requests, drops their ciphertext, and writes the audit
        events of the changes in the same transaction (deterministic IDs). The cluster has news from then on.

        Args:
            unless_refused: leaves alone what was refused; otherwise the commit counts.
        """

    async def give_way(self, changes: Sequence[StagedChange]) -> None:
        """Ends re-sealed values, one by one, for which something else than what they replace is there by now."""

    async def refuse(self, request: UUID, code: str, reason: str) -> None:
        """Ends a request that can never be committed."""


class EndedRequests(Protocol):
    async def forget(self) -> int:
        """Removes requests of which nothing is staged any more, once they are as old as idempotency keys get; returns
        how many changes that were, a bounded number. The same request is a new one from then on."""
