"""Principals of a cluster and what they may do."""

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from edgewright.domain.accounts import Account, Grant
from edgewright.domain.cluster import Fence

__all__ = ["Account", "Accounts", "Grant"]


class Accounts(Protocol):
    """An account has the UUID of its object, which is of class *Edge account*."""

    async def ensure(self, fence: Fence, accounts: Sequence[Account]) -> None:
        """Makes accounts and grants exactly as given, fenced; registers their objects."""

    async def of_cluster(self, cluster: UUID) -> Sequence[Account]:
        """Returns the accounts of a cluster, sorted by role."""

    async def remove(self, fence: Fence) -> None:
        """Removes accounts, grants and class memberships, fenced; does nothing if there are none."""
