"""Tokens of people and scripts, and the answers that idempotency keys remember."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol
from uuid import UUID


class Permission(StrEnum):
    READ = "read"
    CLUSTERS = "clusters"
    SECRETS = "secrets"
    PUSH = "push"
    ADMIN = "admin"


@dataclass(frozen=True)
class OperatorToken:
    """One token, without its secret. ``admin`` holds every permission."""

    id: str
    name: str
    permissions: frozenset[Permission]
    secret_sha256: bytes
    created_at: datetime
    expires_at: datetime | None = None

    def allows(self, permission: Permission) -> bool:
        return permission in self.permissions or Permission.ADMIN in self.permissions


@dataclass(frozen=True)
class FirstAnswer:
    """The stored answer for an idempotency key. ``status`` 0: the first request is still under way."""

    request_digest: str
    status: int
    body: Any
    headers: dict[str, str]


class OperatorTokens(Protocol):
    async def add(self, token: OperatorToken, *, actor: str, edge: UUID | None = None) -> None:
        """Stores a token; ``Conflict`` code ``token_name_taken`` if a living one has that name.

        Args:
            edge: the cluster whose edge opened this session. The event goes to its timeline, within the limits for
                events of an edge. Raises ``NotFound`` and ``Gone`` like everything that edges do.
        """

    async def find(self, token_id: str) -> OperatorToken | None:
        """Returns the token, or None if it is unknown, revoked or expired."""

    async def list(self) -> Sequence[OperatorToken]:
        """Returns all living tokens, by name."""

    async def revoke(self, token_id: str, *, actor: str) -> bool:
        """Revokes a token on every gateway at once; False if there was none."""


class IdempotencyKeys(Protocol):
    """Repeats the first answer for the same key for 24 hours. ``scope`` separates callers and routes."""

    async def claim(self, scope: str, key: str, request_digest: str) -> FirstAnswer | None:
        """Claims a key. None: the caller has it, and must ``settle`` or ``release`` it; otherwise the stored answer.

        ``Invalid`` code ``idempotency_key_reused`` if it was claimed for another request. A claim that was not
        settled within a minute (its gateway died) can be claimed again.
        """

    async def settle(self, scope: str, key: str, status: int, body: Any, headers: dict[str, str]) -> None:
        """Stores the answer."""

    async def release(self, scope: str, key: str) -> None:
        """Drops a claim whose request failed without effect."""

    async def orphan(self) -> None:
        """Frees every unsettled claim at once. Only call this when no gateway that made one is alive."""
