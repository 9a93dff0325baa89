"""Packs: what a first commit is written as, and what is read of any pack without a process of git.

A pack is ``PACK``, version 2, the number of objects, each object (type and length in 7-bit groups, then the deflated
content), and the SHA-1 of all that. Its index, version 2, lists the object IDs in order, with a checksum and the
place of each (gitformat-pack(5)). GitPython's object store (its package ``gitdb``) writes both, with each object
whole. It would keep open what it reads, so we read such objects ourselves. Deltas, large objects and whatever looks
odd are left to git, which reads them under a memory limit and can tell what is damaged.
"""

import os
import zlib
from bisect import bisect_left
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from io import BytesIO
from pathlib import Path
from struct import unpack

from gitdb.base import OStream  # type: ignore[import-untyped]  # gitdb ships no types
from gitdb.pack import PackEntity  # type: ignore[import-untyped]  # gitdb ships no types

LARGEST = 1024 * 1024
"""Bytes of the largest object that is put into a pack, or read of one, here."""
ROOM = 64 * 1024 * 1024
"""Bytes of all objects of a pack that is written: they are kept in memory until then."""

_KINDS = {1: "commit", 2: "tree", 3: "blob"}
_INDEX_HEADER = b"\377tOc\0\0\0\2"
_FANOUT = len(_INDEX_HEADER)
_IDS = _FANOUT + 256 * 4
_MORE = 0x80
_FIRST_PIECE = 4096
_OVERHEAD = 64
"""Bytes that deflate may add to what it cannot compress, beside a thousandth of it, and the object's header."""


def write_pack(
    objects: Mapping[str, tuple[str, bytes]], pack: Callable[[bytes], object], index: Callable[[bytes], object]
) -> str:
    """Writes a pack of whole objects, and its index; returns the name of both, without the ending.

    Args:
        objects: object ID -> kind and content.
        pack: takes the bytes of the one, ``index`` those of the other.
    """
    streams = [
        OStream(bytes.fromhex(object_id), kind.encode(), len(content), BytesIO(content))
        for object_id, (kind, content) in objects.items()
    ]
    checksum, _ = PackEntity.write_pack(streams, pack, index, len(streams), zlib.Z_BEST_SPEED)
    return f"pack-{checksum.hex()}"


class PackFiles:
    """The packs of a repository, as they are when the first object is asked for.

    Args:
        folder: ``objects/pack``.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open = ExitStack()
        self._packs: list[_OpenPack] | None = None

    def close(self) -> None:
        """Closes their files."""
        self._open.close()

    def read(self, object_id: str) -> tuple[str, bytes] | None:
        """Kind and content of an object; None: it has to be asked of git, which may not find it either."""
        if self._packs is None:
            self._packs = [*self._opened()]
        wanted = bytes.fromhex(object_id)
        for each in self._packs:
            place = each.place_of(wanted)
            if place is not None:
                return each.read(place)
        return None

    def _opened(self) -> "list[_OpenPack]":
        found: list[_OpenPack] = []
        for index in sorted(self._folder.glob("pack-*.idx")):
            with suppress(FileNotFoundError):  # a repack has just taken it away; git finds the new one
                files = [self._open.enter_context(path.open("rb")) for path in (index, index.with_suffix(".pack"))]
                found.append(_OpenPack(*(file.fileno() for file in files)))
        return found


class _OpenPack:
    """Two descriptors. Files of packs never change: what was opened stays as it was."""

    def __init__(self, index: int, objects: int) -> None:
        self._index = index
        self._objects = objects
        header = os.pread(index, _IDS, 0)
        known = len(header) == _IDS and header.startswith(_INDEX_HEADER)
        self._fanout: tuple[int, ...] = unpack(">256L", header[_FANOUT:]) if known else (0,) * 256

    def place_of(self, wanted: bytes) -> int | None:
        """Where an object begins; None: it is not in this pack, or too far behind for four bytes."""
        first = wanted[0]
        start, end, total = self._fanout[first - 1] if first else 0, self._fanout[first], self._fanout[255]
        found = start + bisect_left(range(start, end), wanted, key=self._id)
        if found >= end or self._id(found) != wanted:
            return None
        place = os.pread(self._index, 4, _IDS + total * 24 + found * 4)
        return int.from_bytes(place) if len(place) == 4 and not place[0] & _MORE else None

    def _id(self, number: int) -> bytes:
        return os.pread(self._index, 20, _IDS + number * 20)

    def read(self, place: int) -> tuple[str, bytes] | None:
        """An object that is stored whole, and not large; None for another one, and for one that cannot be read."""
        piece = os.pread(self._objects, _FIRST_PIECE, place)
        try:
            kind, length, begin = _decode_header(piece)
            if kind is None or length > LARGEST:
                return None
            longest = length + length // 1000 + _OVERHEAD
            if len(piece) < longest:
                piece = os.pread(self._objects, longest, place)
            inflate = zlib.decompressobj()
            content = inflate.decompress(piece[begin:], length + 1)
        except (IndexError, zlib.error):
            return None
        return (kind, content) if inflate.eof and len(content) == length else None


def _decode_header(piece: bytes) -> tuple[str | None, int, int]:
    """Kind (None: a tag or a delta), length of the content, and where its deflated bytes begin.

    Raises:
        IndexError: the file ends within it.
    """
    length, begin, shift = piece[0] & 0x0F, 0, 4
    while piece[begin] & _MORE:
        begin += 1
        length |= (piece[begin] & ~_MORE) << shift
        shift += 7
    return _KINDS.get(piece[0] >> 4 & 0x07), length, begin + 1
