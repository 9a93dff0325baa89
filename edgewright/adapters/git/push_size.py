"""How large a push may make what edges check out: a few kilobytes can name gigabytes. Standard library only."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from edgewright.adapters.git.push_changes import Trees, UnreadableTree
from edgewright.adapters.git.tree_format import FOLDER

MIB = 1024 * 1024
MAX_OBJECT = 16 * MIB
"""Bytes of one file, also of one that a later commit of the same push removes."""
MAX_CHECKED_OUT = 64 * MIB
"""Bytes of all files below the folder, each path counted."""
MAX_FILES = 10_000
MAX_DEPTH = 64
"""Folders in each other."""


class Extent(NamedTuple):
    """What a folder comes to when it is checked out."""

    files: int
    size: int
    depth: int


class _TooDeep(Exception):
    """Folders in each other beyond ``MAX_DEPTH``."""


def reason_against_size(commit: str, folder: str) -> str | None:
    """One sentence that says why a push is refused for its size; None if it is not.

    Args:
        commit: what the branch would point to.
        folder: the top folder that pushes may change; empty: they may change any path.
    """
    place = f"{folder}/" if folder else "The repository"
    if any(size > MAX_OBJECT for size in _pushed_sizes()):
        return f"The push has a file larger than {MAX_OBJECT // MIB} MiB: keep large files elsewhere."
    try:
        extent = _extent(commit, folder)
    except _TooDeep:
        return f"{place} would have more than {MAX_DEPTH} folders in each other: push fewer."
    if extent.files > MAX_FILES:
        return f"{place} would have {extent.files} files, more than {MAX_FILES}: push fewer."
    if extent.size > MAX_CHECKED_OUT:
        return (
            f"{place} would have {extent.size // MIB} MiB when it is checked out, more than "
            f"{MAX_CHECKED_OUT // MIB} MiB: remove files, and keep large ones elsewhere."
        )
    return None


def _extent(commit: str, folder: str) -> Extent:
    """The extent of a folder at a commit, or of all of it; nothing if the folder is not there."""
    known: dict[str, Extent] = {}

    def measure(tree: str, depth: int) -> Extent:
        if depth > MAX_DEPTH:
            raise _TooDeep
        if tree not in known:
            parts = [
                measure(object_id, depth + 1) if mode == FOLDER else Extent(1, size_of(object_id), 0)
                for mode, object_id in trees.read(tree).values()
            ]
            known[tree] = Extent(
                files=sum(part.files for part in parts),
                size=sum(part.size for part in parts),
                depth=1 + max((part.depth for part in parts), default=0),
            )
        if depth + known[tree].depth > MAX_DEPTH + 1:
            raise _TooDeep
        return known[tree]

    with Trees() as trees, _sizes() as size_of:
        root = f"{commit}^{{tree}}"
        mode, tree = trees.read(root).get(folder.encode(), (b"", "")) if folder else (FOLDER, root)
        return measure(tree, 1) if mode == FOLDER else Extent(0, 0, 0)


@contextmanager
def _sizes() -> Iterator[Callable[[str], int]]:
    """Tells the size of any object, by its ID. Of one that is stored as a delta git reads the first bytes only."""
    command = ["git", "cat-file", "--batch-check=%(objectsize)"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        requests, answers = process.stdin, process.stdout

        def size_of(object_id: str) -> int:
            if requests is None or answers is None:
                raise UnreadableTree
            requests.write(object_id.encode() + b"\n")
            requests.flush()
            answer = answers.readline().strip()
            if not answer.isdigit():
                raise UnreadableTree
            return int(answer)

        try:
            yield size_of
        finally:
            process.kill()


def _pushed_sizes() -> Iterator[int]:
    """The size of each object that the push brings; git keeps them apart until the push is accepted."""
    apart = os.environ.get("GIT_QUARANTINE_PATH")
    if apart is None:
        return
    env = {name: value for name, value in os.environ.items() if name != "GIT_ALTERNATE_OBJECT_DIRECTORIES"}
    command = ["git", "cat-file", "--batch-all-objects", "--unordered", "--batch-check=%(objectsize)"]
    with subprocess.Popen(
        command, env={**env, "GIT_OBJECT_DIRECTORY": apart}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        for line in process.stdout or ():
            if not line.strip().isdigit():
                raise UnreadableTree
            yield int(line)
    if process.returncode != 0:
        raise UnreadableTree
