"""The bytes of one Git tree object, which lists one folder.

A tree object is a sequence of ``<mode in octal> SP <name> NUL <20 bytes of object ID>``, sorted by name as if
the name of a folder ended in ``/``.
"""

import re

FOLDER = b"40000"
FILE = b"100644"
EXECUTABLE = b"100755"
SYMLINK = b"120000"
SUBMODULE = b"160000"

Entries = dict[bytes, tuple[bytes, str]]
"""Name -> (mode, object ID) of one folder."""

_ENTRY = re.compile(rb"([1-7][0-7]{4,5}) ([^\0/]+)\0(.{20})", re.DOTALL)


def decode_entries(content: bytes) -> Entries:
    """Reads a tree object.

    Raises:
        ValueError: these are not the bytes of a tree, or of one whose modes git only warns of, or that names
            something twice.
    """
    entries: Entries = {}
    end = 0
    while end < len(content):
        # Each entry begins where the one before ends. To search for it would skip what does not look like one,
        # and a name inside the skipped part could pass for an entry: so a push could hide what it changes.
        match = _ENTRY.match(content, end)
        if match is None or match[2] in entries:
            raise ValueError("not a tree")
        mode, name, object_id = match.groups()
        entries[name] = (mode, object_id.hex())
        end = match.end()
    return entries


def encode_entries(entries: Entries) -> bytes:
    """The bytes of a tree object."""
    ordered = sorted(entries.items(), key=lambda item: item[0] + b"/" * (item[1][0] == FOLDER))
    return b"".join(b"%b %b\0%b" % (mode, name, bytes.fromhex(oid)) for name, (mode, oid) in ordered)
