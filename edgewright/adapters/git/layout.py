"""Repositories as folders: how one is made, found and put away.

Below the root: ``<uuid>.git`` (in service), ``archive/<uuid>-<head>.git`` (out of service),
``archive/<uuid>.archivals`` (how often that happened), ``new/`` (being made), ``hooks/`` (see ``hooks``),
``sole-maker`` (locked by whoever makes repositories because of entries). The files of a new repository are written
here rather than by ``git init``: three files instead of a template, the same bytes with every version of git.
"""

import os
import secrets
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

from edgewright.adapters.git.failures import headless
from edgewright.adapters.git.objects import fsync_folder
from edgewright.adapters.git.refs import locked, read_head

ARCHIVE = "archive"
UNFINISHED = "new"
SOLE_MAKER = "sole-maker"

# gc.auto: repacking is `upkeep`'s work, never a surprise inside a push. core.fsync: git's default leaves
# loose objects and refs to the kernel's mercy. core.filesRefLockTimeout: a push waits for a commit's lock
# as long as a commit waits for a push's.
_CONFIG = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\tfsync = all
\tfsyncMethod = fsync
\tfilesRefLockTimeout = 2000
\tlogAllRefUpdates = false
[gc]
\tauto = 0
[receive]
\tautogc = false
\tfsckObjects = true
\tdenyNonFastForwards = true
\tdenyDeletes = true
[transfer]
\tfsckObjects = true
"""


def repository_folder(root: Path, repository: UUID) -> Path:
    """Where a repository in service lives."""
    return root / f"{repository}.git"


def is_whole(folder: Path) -> bool:
    """Whether a repository is there; it appears by one rename, so it is there whole or not at all."""
    return (folder / "HEAD").is_file()


def is_there(folder: Path) -> bool:
    """The same, of a folder in which nobody should have removed anything.

    Raises:
        edgewright.errors.Waiting: code ``repository_headless``: somebody has.
    """
    if is_whole(folder):
        return True
    if (folder / "objects").is_dir() and not is_whole(folder):  # looked at again: it may be appearing right now
        raise headless(folder.name)
    return False


@contextmanager
def drafted(root: Path, repository: UUID, pool: Executor, *, stale_after: float) -> Iterator[Path]:
    """An empty repository beside its place, removed in the end unless it was put into service.

    Args:
        pool: threads that may wait for the disk.
        stale_after: age in seconds from which what another attempt left behind is cleared away.
    """
    unfinished = root / UNFINISHED
    unfinished.mkdir(parents=True, exist_ok=True)
    remove_leftovers(unfinished, str(repository), older_than=stale_after)
    draft = unfinished / f"{repository}-{secrets.token_hex(8)}"
    try:
        write_repository(draft, pool)
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def put_into_service(root: Path, repository: UUID, draft: Path) -> None:
    """Renames a draft into its place unless another one has come there first; durable when it returns."""
    folder = repository_folder(root, repository)
    try:
        draft.rename(folder)
    except OSError:
        if not is_whole(folder):
            if folder.is_dir():
                raise headless(folder.name) from None
            raise
    fsync_folder(root)


def read_archivals(root: Path, repository: UUID) -> int:
    """How often a repository was archived, there or not: one byte is written for each time."""
    try:
        return _archivals(root, repository).stat().st_size
    except FileNotFoundError:
        return 0


@contextmanager
def archivals_held(root: Path, repository: UUID, *, deadline: float, one_more: bool = False) -> Iterator[int]:
    """That number, which nobody changes meanwhile.

    Args:
        deadline: by ``time.monotonic()``.
        one_more: counts another one first; durable inside.

    Raises:
        edgewright.errors.Waiting: code ``repository_busy`` at the deadline.
    """
    file = _archivals(root, repository)
    file.parent.mkdir(parents=True, exist_ok=True)
    with locked(file, deadline=deadline, reason="it is being made or archived") as descriptor:
        if one_more:
            os.lseek(descriptor, 0, os.SEEK_END)
            os.write(descriptor, b".")
            os.fsync(descriptor)
            fsync_folder(file.parent)
        yield os.fstat(descriptor).st_size


def _archivals(root: Path, repository: UUID) -> Path:
    return root / ARCHIVE / f"{repository}.archivals"


def archive_repository(root: Path, repository: UUID) -> None:
    """Renames a repository into the archive, under its head and, if that is taken, a number."""
    folder = repository_folder(root, repository)
    archive = root / ARCHIVE
    name = f"{repository}-{read_head(folder) or 'empty'}"
    taken = {entry.name for entry in archive.glob(f"{name}*.git")}
    names = (f"{name}{suffix}.git" for suffix in ["", *(f"-{n}" for n in range(2, len(taken) + 3))])
    folder.rename(archive / next(candidate for candidate in names if candidate not in taken))
    fsync_folder(archive)
    fsync_folder(root)


def remove_leftovers(folder: Path, prefix: str, *, older_than: float) -> None:
    """Removes folders whose names start with ``prefix`` and that nothing has touched for that many seconds."""
    for leftover in folder.glob(f"{prefix}*"):
        try:
            age = time.time() - leftover.stat().st_mtime
        except FileNotFoundError:
            continue
        if age > older_than and leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)


def write_repository(draft: Path, pool: Executor) -> None:
    """Makes the folder ``draft`` an empty repository; durable but for the name of the folder itself.

    Nobody looks at it before that, so nothing in it has to be on disk before something else.
    """
    for folder in ("", "objects", "objects/info", "objects/pack", "refs", "refs/heads"):
        (draft / folder).mkdir()
    for name, text in (("config", _CONFIG), ("HEAD", "ref: refs/heads/main\n")):
        (draft / name).write_text(text, encoding="ascii")
    waits = [pool.submit(_fsync_file, draft / name) for name in ("config", "HEAD")]
    waits += [pool.submit(fsync_folder, draft / folder) for folder in ("objects", "refs", "")]
    for wait in waits:
        wait.result()


def _fsync_file(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
