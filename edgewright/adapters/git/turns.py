"""Whose turn it is to have git run, and how much the gateway keeps of what came or goes slowly.

A turn lasts as long as git works. The request is read to its end before it, and what git answers is kept, up to a
bound, until the client has taken it. So whoever sends or reads slowly holds no turn.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from edgewright.errors import Busy

MIB = 1024 * 1024


@dataclass(frozen=True)
class Guest:
    """Who asks for a repository.

    Args:
        payer: whom turns and kept bytes count for: a cluster, or an operator token.
        is_edge: it has a share that no operator takes.
    """

    payer: Hashable
    is_edge: bool


class GitTurns:
    """Bounds how many git processes there are at a time.

    Args:
        processes: of all guests together; operators take at most half.
        patience: seconds that a guest waits before it is refused.
    """

    def __init__(self, processes: int, *, patience: float) -> None:
        self._together = asyncio.Semaphore(processes)
        self._of_operators = asyncio.Semaphore(max(1, processes // 2))
        self._patience = patience

    @asynccontextmanager
    async def turn(self, guest: Guest) -> AsyncIterator[None]:
        """Waits for a turn, which lasts as long as the context.

        Raises:
            Busy: code ``git_busy``.
        """
        mine = [self._together] if guest.is_edge else [self._of_operators, self._together]
        taken: list[asyncio.Semaphore] = []
        try:
            try:
                async with asyncio.timeout(self._patience):
                    for semaphore in mine:
                        await semaphore.acquire()
                        taken.append(semaphore)
            except TimeoutError:
                raise busy() from None
            yield
        finally:
            for semaphore in taken:
                semaphore.release()


@dataclass(frozen=True)
class KeepLimits:
    """How many bytes are kept at a time; a guest that is over gets its answer at its own pace, while git waits.

    Args:
        of_one_answer: of one exchange.
        of_one_guest: of all exchanges of one guest.
        of_operators: of all operators together.
        together: of all guests.
    """

    of_one_answer: int = 64 * MIB
    of_one_guest: int = 128 * MIB
    of_operators: int = 512 * MIB
    together: int = 1024 * MIB


class Room:
    """Counts the bytes that are kept on disk."""

    def __init__(self, limits: KeepLimits) -> None:
        self.limits = limits
        self.taken = 0
        self._by_operators = 0
        self._by_guest: Counter[Hashable] = Counter()

    def take(self, guest: Guest, size: int) -> bool:
        """Takes room for so many bytes; returns whether there was enough."""
        limits = self.limits
        if self._by_guest[guest.payer] + size > limits.of_one_guest or self.taken + size > limits.together:
            return False
        if not guest.is_edge and self._by_operators + size > limits.of_operators:
            return False
        self._change(guest, size)
        return True

    def give_back(self, guest: Guest, size: int) -> None:
        """What ``take`` has taken is free again."""
        self._change(guest, -size)

    def _change(self, guest: Guest, size: int) -> None:
        self.taken += size
        self._by_operators += 0 if guest.is_edge else size
        self._by_guest[guest.payer] += size
        if not self._by_guest[guest.payer]:
            del self._by_guest[guest.payer]


def busy() -> Busy:
    """Neither a turn nor room is free."""
    return Busy("Too many Git requests are being answered.", code="git_busy", retry_after=5.0)
