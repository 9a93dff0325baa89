"""Bounds the downloads of the agent's image that are under way. Nobody logs in for them, so addresses are counted."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.responses import FileResponse
from starlette.types import Message, Receive, Scope, Send

from api.connections.places import source_of
from edgewright.errors import Busy, TooMany

AT_ONCE = 64
OF_ONE_ADDRESS = 16
"""A site has one address for all its nodes, and a node takes several layers side by side."""
STALL_SECONDS = 30.0
"""A reader that takes nothing for so long is cut off. A runtime asks again."""


class ImageDownloads:
    """The counts of one gateway."""

    def __init__(self, *, stall_seconds: float = STALL_SECONDS) -> None:
        self.stall_seconds = stall_seconds
        self._here: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._here.total()

    @contextmanager
    def one_of(self, address: str) -> Iterator[None]:
        """A download, for as long as it lasts.

        Raises:
            TooMany: code ``image_busy``: it would be one too many of this address.
            Busy: the same code: it would be one too many of all.
        """
        if self._here[address] >= OF_ONE_ADDRESS:
            raise TooMany(
                f"This address has {OF_ONE_ADDRESS} downloads of the agent's image under way already.",
                code="image_busy",
                retry_after=5.0,
            )
        if len(self) >= AT_ONCE:
            raise Busy("Too many downloads of the agent's image are under way.", code="image_busy", retry_after=5.0)
        self._here[address] += 1
        try:
            yield
        finally:
            self._here[address] -= 1
            if not self._here[address]:
                del self._here[address]


class CountedFile(FileResponse):
    """A file that is sent only if its download has room among the others."""

    def __init__(self, path: Path, downloads: ImageDownloads, *, headers: dict[str, str], media_type: str) -> None:
        super().__init__(path, headers=headers, media_type=media_type)
        self._downloads = downloads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        client = scope.get("client")

        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(self._downloads.stall_seconds):
                await send(message)

        with self._downloads.one_of(source_of(client[0]) if client else "unknown"):
            await super().__call__(scope, receive, send_in_time)
