"""Nested Git trees: reading them, and amending one along the changed paths only.

A tree object is a sequence of ``<mode in octal> SP <name> NUL <20 bytes of object ID>``, sorted by name as if
the name of a folder ended in ``/``. A change reads and writes the trees on its path, so its cost depends on
the size of those folders and not on the repository's.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from edgewright.adapters.git.failures import damaged
from edgewright.adapters.git.objects import ObjectStore
from edgewright.domain.repository_paths import check_path
from edgewright.errors import Invalid

_ENTRY = re.compile(rb"([0-7]{5,6}) ([^\0]+)\0(.{20})", re.DOTALL)
_FOLDER = b"40000"
_FILE = b"100644"
_FILES = (_FILE, b"100755")
_SUBMODULE = b"160000"

Entries = dict[bytes, tuple[bytes, str]]
"""Name -> (mode, object ID) of one folder."""


@dataclass
class Change:
    """What is to become of one name in a folder, as a trie over path segments.

    Args:
        content: the file's new content; None deletes the file; meaningful only if ``is_file``.
        is_file: whether the name itself was given as a path.
        below: changes of names inside the folder of this name.
    """

    content: bytes | None = None
    is_file: bool = False
    below: dict[str, "Change"] = field(default_factory=dict)

    @property
    def writes(self) -> bool:
        """Whether anything at or below this name gets content (and is not just deleted)."""
        return (self.is_file and self.content is not None) or any(c.writes for c in self.below.values())


def change_tree(changes: Mapping[str, bytes | None]) -> Change:
    """The changes as a trie.

    Raises:
        Invalid: code ``path_invalid``: a path that is not portable, or both a file and a folder.
    """
    root = Change()
    for path, content in changes.items():
        node = root
        for segment in check_path(path):
            node = node.below.setdefault(segment, Change())
        node.content, node.is_file = content, True
    return root


def amend(objects: ObjectStore, tree: str | None, change: Change, *, folder: str = "") -> str | None:
    """Writes the trees and blobs that the change needs.

    Args:
        tree: the folder's tree before; None if there is none.
        folder: the folder's path with a ``/`` at its end, for error messages.

    Returns:
        The folder's new tree, ``tree`` itself if nothing changes; None if the folder is empty or absent.

    Raises:
        Invalid: code ``path_invalid``: a file is where a folder is needed, or the other way round.
    """
    entries = read_entries(objects, tree) if tree else {}
    before = dict(entries)
    for name, node in change.below.items():
        _amend_name(objects, entries, name, node, folder)
    if entries == before:
        return tree
    return objects.write("tree", encode_entries(entries)) if entries else None


def _amend_name(objects: ObjectStore, entries: Entries, name: str, node: Change, folder: str) -> None:
    path, key = folder + name, name.encode()
    mode, _ = entries.get(key, (b"", ""))
    if node.is_file and node.content is None and mode not in {b"", _FOLDER}:
        del entries[key]
        mode = b""
    if node.below:
        mode = _amend_below(objects, entries, key, node, path)
    if not node.is_file or node.content is None:
        return
    if mode == _FOLDER:
        raise not_both(path)
    entries[key] = (mode if mode in _FILES else _FILE, objects.write("blob", node.content))


def _amend_below(objects: ObjectStore, entries: Entries, key: bytes, node: Change, path: str) -> bytes:
    """Amends the folder of that name; returns the mode of what now bears the name, empty if nothing does."""
    mode, object_id = entries.get(key, (b"", ""))
    if mode not in {b"", _FOLDER}:
        if any(below.writes for below in node.below.values()):
            raise not_both(path)
        return mode
    subtree = amend(objects, object_id or None, node, folder=path + "/")
    if subtree is None:
        entries.pop(key, None)
        return b""
    entries[key] = (_FOLDER, subtree)
    return _FOLDER


def not_both(path: str) -> Invalid:
    """The refusal of a path that would have to be a file and a folder at once."""
    return Invalid(f"The path {path!r} cannot be a file and a folder.", code="path_invalid", where=path)


def find_blob(objects: ObjectStore, tree: str, path: str) -> bytes | None:
    """The content of the file at a path below a tree; None if there is no file."""
    *folders, name = path.split("/")
    found = _descend(objects, tree, folders)
    mode, object_id = read_entries(objects, found).get(_key(name), (b"", "")) if found else (b"", "")
    return objects.read(object_id, "blob") if mode not in {b"", _FOLDER, _SUBMODULE} else None


def walk_files(objects: ObjectStore, tree: str, prefix: str) -> Iterator[str]:
    """The paths of all files below a folder (``""`` for all), in no particular order."""
    folder = prefix.strip("/")
    found = _descend(objects, tree, folder.split("/") if folder else [])
    pending = [(folder + "/" if folder else "", found)] if found else []
    while pending:
        path, subtree = pending.pop()
        for name, (mode, object_id) in read_entries(objects, subtree).items():
            full = path + name.decode(errors="backslashreplace")
            if mode == _FOLDER:
                pending.append((full + "/", object_id))
            elif mode != _SUBMODULE:
                yield full


def read_entries(objects: ObjectStore, tree: str) -> Entries:
    """The entries of a tree object."""
    content = objects.read(tree, "tree")
    if content is None:
        raise damaged(f"tree {tree} is missing")
    entries: Entries = {}
    end = 0
    for match in _ENTRY.finditer(content):
        mode, name, object_id = match.groups()
        entries[name] = (mode, object_id.hex())
        end = match.end()
    if end != len(content):
        raise damaged(f"tree {tree} cannot be read")
    return entries


def encode_entries(entries: Entries) -> bytes:
    """The bytes of a tree object."""
    ordered = sorted(entries.items(), key=lambda item: item[0] + b"/" * (item[1][0] == _FOLDER))
    return b"".join(b"%b %b\0%b" % (mode, name, bytes.fromhex(oid)) for name, (mode, oid) in ordered)


def _descend(objects: ObjectStore, tree: str, folders: list[str]) -> str | None:
    found = tree
    for folder in folders:
        mode, found = read_entries(objects, found).get(_key(folder), (b"", ""))
        if mode != _FOLDER:
            return None
    return found


def _key(name: str) -> bytes:
    return name.encode(errors="backslashreplace")
