"""Principals of a cluster and what they may do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from edgewright.domain.cluster import Fence, Role


@dataclass(frozen=True)
class Grant:
    """Permission (well-known UUID) on a target (repository or object UUID)."""

    permission: UUID
    target: UUID


@dataclass(frozen=True)
class Account:
    """One principal. Its UUID follows from cluster and role, so that it can never be doubled."""

    uuid: UUID
    cluster: UUID
    role: Role
    name: str
    grants: tuple[Grant, ...]


class Accounts(Protocol):
    async def ensure(self, fence: Fence, accounts: Sequence[Account]) -> None:
        """Makes accounts and grants exactly as given, fenced; registers their objects of class *Edge account*."""

    async def of_cluster(self, cluster: UUID) -> Sequence[Account]:
        """The accounts of a cluster, by role."""

    async def remove(self, fence: Fence) -> None:
        """Removes accounts, grants and class memberships, fenced; nothing happens if there are none."""
