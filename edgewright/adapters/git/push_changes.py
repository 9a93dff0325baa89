"""What a push changes, found by walking two trees side by side where they differ.

``git diff-tree`` collects everything before it prints anything, and a dozen nested trees can name more files
than a machine has memory for. This walk yields each name as it comes, so that its reader can stop. It is part
of the ``pre-receive`` hook: standard library only.
"""

import subprocess
from collections.abc import Iterator
from types import TracebackType
from typing import NamedTuple, Self

from edgewright.adapters.git.tree_format import FOLDER, Entries, decode_entries

ABSENT = b""
_MAX_FOLDER_BYTES = 4 * 1024 * 1024


class UnreadableTree(Exception):
    """Git could not read one of the trees; what came so far says nothing about the rest."""


class TooMuch(Exception):
    """One folder alone lists more than anyone has."""


class TreeDifference(NamedTuple):
    """One name that differs between two trees, with its modes (``b""`` where it is not there) and object IDs."""

    old_mode: bytes
    mode: bytes
    path: str
    old_id: str
    id: str

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder, or was one and is gone."""
        return FOLDER in self[:2] and set(self[:2]) <= {FOLDER, ABSENT}


def changed_entries(old: str, new: str) -> Iterator[TreeDifference]:
    """What differs between two commits, folders included, each before what is in it.

    Paths that are not UTF-8 have surrogates in them.

    Args:
        old: empty: everything is new.

    Raises:
        Unreadable: see there.
        TooMuch: see there.
    """
    with Trees() as trees:
        pending = [("", f"{old}^{{tree}}" if old else "", f"{new}^{{tree}}")]
        while pending:
            prefix, old_tree, new_tree = pending.pop()
            before, after = trees.read(old_tree), trees.read(new_tree)
            for name in sorted(before.keys() | after.keys(), reverse=True):
                old_mode, old_id = before.get(name, (ABSENT, ""))
                mode, new_id = after.get(name, (ABSENT, ""))
                if (old_mode, old_id) == (mode, new_id):
                    continue
                path = prefix + name.decode(errors="surrogateescape")
                yield TreeDifference(old_mode, mode, path, old_id, new_id)
                if FOLDER in {old_mode, mode}:
                    old_tree = old_id if old_mode == FOLDER else ""
                    pending.append((path + "/", old_tree, new_id if mode == FOLDER else ""))


class Trees:
    """Reads trees, and files, from one ``git cat-file --batch`` process in the current repository."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            ["git", "cat-file", "--batch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._process as process:
            process.kill()

    def read(self, tree: str) -> Entries:
        """The entries of a tree; none if it is not there (``""``)."""
        if not tree:
            return {}
        try:
            return decode_entries(self._content(tree, b"tree", _MAX_FOLDER_BYTES))
        except ValueError as error:
            raise UnreadableTree from error

    def commit(self, commit: str) -> bytes:
        """A commit as it is stored, in whatever encoding it says that it is."""
        return self._content(commit, b"commit", None)

    def file(self, blob: str) -> bytes:
        """What is in a file, whose size the rules for pushes bound."""
        return self._content(blob, b"blob", None)

    def _content(self, name: str, kind: bytes, limit: int | None) -> bytes:
        requests, answers = self._process.stdin, self._process.stdout
        if requests is None or answers is None:
            raise UnreadableTree
        requests.write(name.encode() + b"\n")
        requests.flush()
        match answers.readline().split():
            case [_, found, digits] if found == kind:
                size = int(digits)
            case _:
                raise UnreadableTree
        if limit is not None and size > limit:
            raise TooMuch
        content = answers.read(size + 1)[:-1]
        if len(content) != size:
            raise UnreadableTree
        return content
