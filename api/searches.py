"""The searches of one gateway: each reads all entries of an Application, so few run at a time, whoever asks."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from edgewright.errors import TooMany

AT_ONCE = 2
"""Searches that run; others wait."""
OF_ONE_TOKEN = 4
"""Searches of one token that run or wait, its sessions among them."""


class Searches:
    """Counts them."""

    def __init__(self) -> None:
        self._running = asyncio.Semaphore(AT_ONCE)
        self._under_way: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._under_way.total()

    @asynccontextmanager
    async def turn(self, token: str) -> AsyncIterator[None]:
        """Waits until the search of a token may run; it runs as long as the context.

        Raises:
            TooMany: code ``searches_busy``: the token has enough under way.
        """
        if self._under_way[token] >= OF_ONE_TOKEN:
            raise TooMany(
                f"This token has {OF_ONE_TOKEN} searches under way already.", code="searches_busy", retry_after=2.0
            )
        self._under_way[token] += 1
        try:
            async with self._running:
                yield
        finally:
            self._under_way[token] -= 1
            if not self._under_way[token]:
                del self._under_way[token]
