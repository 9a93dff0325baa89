"""Bytes that the gateway keeps for a slow client: few of them in memory, the rest in a file that has no name."""

import asyncio
import os
import tempfile
import weakref
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Self

from edgewright.adapters.git.failures import storage_errors
from edgewright.adapters.git.turns import Guest, Room, busy
from edgewright.errors import TooLarge

IN_MEMORY = 256 * 1024
"""Bytes of one exchange that take no room on disk."""
PIECE = 64 * 1024


class KeptBytes:
    """What one exchange keeps; written at the end, read from the beginning.

    Args:
        folder: of the file.
    """

    def __init__(self, folder: Path, room: Room, guest: Guest) -> None:
        self._folder = folder
        self._room = room
        self._guest = guest
        self._memory = bytearray()
        self._file: int | None = None
        self._on_disk = 0
        self._rented = 0

    def __len__(self) -> int:
        return len(self._memory) + self._on_disk

    @classmethod
    async def whole(cls, body: AsyncIterator[bytes], folder: Path, room: Room, guest: Guest, *, limit: int) -> Self:
        """A request, read to its end.

        Raises:
            TooLarge: it has more than ``limit`` bytes.
            Busy: code ``git_busy``: there is no room for it.
            Waiting: code ``git_unavailable``: the disk takes it not.
        """
        kept = cls(folder, room, guest)
        try:
            async for piece in body:
                if len(kept) + len(piece) > limit:
                    raise TooLarge(f"The request is larger than {limit} bytes.")
                if not await kept.add(piece):
                    raise busy()
        except BaseException:
            kept.give_back()
            raise
        return kept

    async def add(self, piece: bytes) -> bool:
        """Keeps a piece; returns whether there was room for it.

        Raises:
            Waiting: code ``git_unavailable``.
        """
        if not self._on_disk and len(self._memory) + len(piece) <= IN_MEMORY:
            self._memory += piece
            return True
        if not self._room.take(self._guest, len(piece)):
            return False
        self._rented += len(piece)
        with storage_errors():
            if self._file is None:
                self._open()
            await asyncio.to_thread(self._write, piece, self._on_disk)
        self._on_disk += len(piece)
        return True

    async def at(self, position: int) -> bytes:
        """At most ``PIECE`` bytes from a position on; none at the end."""
        if position < len(self._memory):
            return bytes(self._memory[position : position + PIECE])
        behind = position - len(self._memory)
        if self._file is None or behind >= self._on_disk:
            return b""
        size = min(PIECE, self._on_disk - behind)
        with storage_errors():
            return await asyncio.to_thread(self._read, size, behind)

    async def pieces(self) -> AsyncIterator[bytes]:
        """All of it."""
        position = 0
        while piece := await self.at(position):
            position += len(piece)
            yield piece

    def forget(self) -> None:
        """Nothing of it is needed any more; it can be filled anew."""
        self._memory.clear()
        self._on_disk = 0
        self.give_back()

    def give_back(self) -> None:
        """Frees the room that it took."""
        rented, self._rented = self._rented, 0
        self._room.give_back(self._guest, rented)

    def _open(self) -> None:
        file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115 - closed with this object
        # Not before: a thread that a cancelled request left behind may still write, and descriptors are used again.
        weakref.finalize(self, file.close)
        self._file = file.fileno()

    def _write(self, piece: bytes, position: int) -> None:
        if self._file is not None:
            written = 0
            while written < len(piece):
                written += os.pwrite(self._file, piece[written:], position + written)

    def _read(self, size: int, position: int) -> bytes:
        return b"" if self._file is None else os.pread(self._file, size, position)
