"""How many Git exchanges each cluster has under way.

The gateway runs a bounded number of git processes. Without a bound for each cluster, one edge (or whoever holds its
flux credential) that sends its requests slowly would keep all the others from their repositories.
"""

from collections import Counter
from uuid import UUID

from edgewright.errors import Waiting

AT_ONCE = 4
"""Exchanges of one cluster; Flux fetches its own repository and the charts, each one at a time."""


class GitGuests:
    """The counts of one gateway. Whoever enters leaves."""

    def __init__(self) -> None:
        self._here: Counter[UUID] = Counter()

    def enter(self, cluster: UUID) -> None:
        """Counts an exchange.

        Raises:
            Waiting: code ``git_busy``: it would be one too many.
        """
        if self._here[cluster] >= AT_ONCE:
            raise Waiting(
                f"This cluster has {AT_ONCE} Git requests under way already.", code="git_busy", retry_after=5.0
            )
        self._here[cluster] += 1

    def leave(self, cluster: UUID) -> None:
        """The exchange has ended."""
        self._here[cluster] -= 1
        if not self._here[cluster]:
            del self._here[cluster]
