"""How many Git exchanges each caller has under way, from the first byte of the request to the last of the answer.

An exchange that is under way costs memory and disk, and a turn of git only while git works (``adapters.git.turns``).
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from edgewright.errors import Busy, TooMany

AT_ONCE = 4
"""Exchanges of one cluster; Flux fetches its own repository and the charts, each one at a time."""
OF_ONE_TOKEN = 8
"""Exchanges of one operator token, its sessions among them."""
OF_OPERATORS = 64
"""Exchanges of all operators together."""


class GitGuests:
    """The counts of one gateway."""

    def __init__(self) -> None:
        self._here: Counter[UUID | str] = Counter()
        self._operators = 0

    def __len__(self) -> int:
        return self._here.total()

    @contextmanager
    def of_cluster(self, cluster: UUID) -> Iterator[None]:
        """An exchange of a cluster, for as long as it lasts.

        Raises:
            TooMany: code ``git_busy``: it would be one too many.
        """
        with self._counted(cluster, AT_ONCE, "This cluster"):
            yield

    @contextmanager
    def of_operator(self, token: str) -> Iterator[None]:
        """An exchange of an operator, for as long as it lasts.

        Args:
            token: ID of the token, or of the one that opened the session.

        Raises:
            TooMany: code ``git_busy``: it would be one too many of this token.
            Busy: the same code: it would be one too many of all operators.
        """
        with self._counted(token, OF_ONE_TOKEN, "This token"):
            if self._operators >= OF_OPERATORS:
                raise Busy("Operators have too many Git requests under way.", code="git_busy", retry_after=5.0)
            self._operators += 1
            try:
                yield
            finally:
                self._operators -= 1

    @contextmanager
    def _counted(self, guest: UUID | str, most: int, named: str) -> Iterator[None]:
        if self._here[guest] >= most:
            raise TooMany(f"{named} has {most} Git requests under way already.", code="git_busy", retry_after=5.0)
        self._here[guest] += 1
        try:
            yield
        finally:
            self._here[guest] -= 1
            if not self._here[guest]:
                del self._here[guest]
