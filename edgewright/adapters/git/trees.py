"""Nested Git trees: reading them, and amending one along the changed paths only.

A change reads and writes the trees on its path, so its cost depends on the size of those folders and not on
the repository's.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from edgewright.adapters.git.failures import damaged
from edgewright.adapters.git.objects import ObjectStore
from edgewright.adapters.git.tree_format import (
    EXECUTABLE,
    FILE,
    FOLDER,
    SUBMODULE,
    Entries,
    decode_entries,
    encode_entries,
)
from edgewright.domain.repository_paths import check_path
from edgewright.errors import Invalid

_FILES = (FILE, EXECUTABLE)


@dataclass
class TreeChange:
    """What is to become of one name in a folder, as a trie over path segments.

    Args:
        content: the file's new content; None deletes the file; meaningful only if ``is_file``.
        is_file: whether the name itself was given as a path.
        below: changes of names inside the folder of this name.
    """

    content: bytes | None = None
    is_file: bool = False
    below: dict[str, "TreeChange"] = field(default_factory=dict)

    @property
    def writes(self) -> bool:
        """Whether anything at or below this name gets content (and is not just deleted)."""
        return (self.is_file and self.content is not None) or any(c.writes for c in self.below.values())


def change_tree(changes: Mapping[str, bytes | None]) -> TreeChange:
    """The changes as a trie.

    Raises:
        Invalid: code ``path_invalid``: a path that is not portable, or both a file and a folder.
    """
    root = TreeChange()
    for path, content in changes.items():
        node = root
        for segment in check_path(path):
            node = node.below.setdefault(segment, TreeChange())
        node.content, node.is_file = content, True
    return root


def amend(objects: ObjectStore, tree: str | None, change: TreeChange, *, folder: str = "") -> str | None:
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


def _amend_name(objects: ObjectStore, entries: Entries, name: str, node: TreeChange, folder: str) -> None:
    path, key = folder + name, name.encode()
    mode, _ = entries.get(key, (b"", ""))
    if node.is_file and node.content is None and mode not in {b"", FOLDER}:
        del entries[key]
        mode = b""
    if node.below:
        mode = _amend_below(objects, entries, key, node, path)
    if not node.is_file or node.content is None:
        return
    if mode == FOLDER:
        raise not_both(path)
    entries[key] = (mode if mode in _FILES else FILE, objects.write("blob", node.content))


def _amend_below(objects: ObjectStore, entries: Entries, key: bytes, node: TreeChange, path: str) -> bytes:
    """Amends the folder of that name; returns the mode of what now bears the name, empty if nothing does."""
    mode, object_id = entries.get(key, (b"", ""))
    if mode not in {b"", FOLDER}:
        if any(below.writes for below in node.below.values()):
            raise not_both(path)
        return mode
    subtree = amend(objects, object_id or None, node, folder=path + "/")
    if subtree is None:
        entries.pop(key, None)
        return b""
    entries[key] = (FOLDER, subtree)
    return FOLDER


def not_both(path: str) -> Invalid:
    """The refusal of a path that would have to be a file and a folder at once."""
    return Invalid(f"The path {path!r} cannot be a file and a folder.", code="path_invalid", where=path)


def find_blob(objects: ObjectStore, tree: str, path: str) -> bytes | None:
    """The content of the file at a path below a tree; None if the tree names no such file.

    Raises:
        Stalled: code ``repository_damaged``: it names one whose content is not there.
    """
    *folders, name = path.split("/")
    found = _descend(objects, tree, folders)
    mode, object_id = read_entries(objects, found).get(_key(name), (b"", "")) if found else (b"", "")
    if mode in {b"", FOLDER, SUBMODULE}:
        return None
    content = objects.read(object_id, "blob")
    if content is None:
        raise damaged(f"the content of {path} is missing (object {object_id})")
    return content


def find_folder(objects: ObjectStore, tree: str, path: str) -> str | None:
    """The tree of a folder below a tree (``""`` for that itself); None if there is no such folder."""
    folder = path.strip("/")
    return _descend(objects, tree, folder.split("/") if folder else [])


def walk_files(objects: ObjectStore, tree: str, prefix: str) -> Iterator[str]:
    """The paths of all files below a folder (``""`` for all), in no particular order."""
    folder = prefix.strip("/")
    found = find_folder(objects, tree, folder)
    pending = [(folder + "/" if folder else "", found)] if found else []
    while pending:
        path, subtree = pending.pop()
        for name, (mode, object_id) in read_entries(objects, subtree).items():
            full = path + name.decode(errors="backslashreplace")
            if mode == FOLDER:
                pending.append((full + "/", object_id))
            elif mode != SUBMODULE:
                yield full


def read_entries(objects: ObjectStore, tree: str) -> Entries:
    """The entries of a tree object."""
    content = objects.read(tree, "tree")
    if content is None:
        raise damaged(f"tree {tree} is missing")
    try:
        return decode_entries(content)
    except ValueError as error:
        raise damaged(f"tree {tree} cannot be read") from error


def _descend(objects: ObjectStore, tree: str, folders: list[str]) -> str | None:
    found = tree
    for folder in folders:
        mode, found = read_entries(objects, found).get(_key(folder), (b"", ""))
        if mode != FOLDER:
            return None
    return found


def _key(name: str) -> bytes:
    return name.encode(errors="backslashreplace")
