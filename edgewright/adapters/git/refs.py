"""The branch ``main`` of a bare repository: reading its head, and moving it by compare-and-set.

The move follows Git's own protocol for loose refs: create ``main.lock`` exclusively, compare, write, rename
over ``main``. A git process (a push, a repack) and this code therefore exclude each other. Around it our own
writers hold an advisory lock that the kernel drops when a process dies. It keeps them from contending for
``main.lock`` and makes the removal of a stale ``main.lock`` safe among them.

Our ``main.lock`` is a hard link to a draft beside the repository's files, so that the next writer knows the lock of a
killed one as ours, and takes it away at once; that of a git process is left alone until it is old.
"""

import fcntl
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edgewright.adapters.git.commits import is_commit_id
from edgewright.adapters.git.failures import busy, damaged
from edgewright.adapters.git.objects import fsync_folder
from edgewright.ports.git_server import CommitId, HeadMoved, WriterFence

HEADS = "refs/heads"
MAIN = f"{HEADS}/main"
WRITER_LOCK = "edgewright.writer"
DRAFT = "edgewright.draft"
FENCE = "edgewright.fence"
"""Holds the number of the newest fence that moved no head, and generation and change of who wrote it."""


def read_head(repository: Path) -> CommitId | None:
    """The commit of ``main``: one file read, or two if the ref was packed; None while it has none.

    Raises:
        edgewright.errors.Stalled: code ``repository_damaged``.
        OSError: other than a missing file.
    """
    try:
        head = (repository / MAIN).read_bytes().decode("ascii", errors="replace").strip()
    except FileNotFoundError:
        return _read_packed_head(repository)
    if not is_commit_id(head):
        raise damaged("refs/heads/main does not hold a commit ID")
    return head


def _read_packed_head(repository: Path) -> CommitId | None:
    try:
        lines = (repository / "packed-refs").read_text("utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return None
    heads = (line.split(" ", 1)[0] for line in lines if line.endswith(" " + MAIN))
    return next(filter(is_commit_id, heads), None)


def move_head(
    repository: Path,
    new: CommitId,
    *,
    expected: CommitId | None,
    fence: WriterFence | None = None,
    patience: float,
    stale_after: float,
) -> None:
    """Points ``main`` to ``new`` if it still points to ``expected``; durable when it returns.

    Args:
        fence: refuses an attempt that another one has overtaken without moving the head.
        patience: seconds to wait for other writers.
        stale_after: age in seconds from which a lock file has no living owner.

    Raises:
        HeadMoved: it points elsewhere, or another fence was written.
        edgewright.errors.Waiting: code ``repository_busy``.
    """
    deadline = time.monotonic() + patience
    with sole_writer(repository, deadline=deadline):
        _hold(repository, fence)
        lock, draft = repository / f"{MAIN}.lock", repository / DRAFT
        _clear_away(draft, lock)
        try:
            _write_draft(draft, new)
            _link_lock(draft, lock, deadline=deadline, stale_after=stale_after)
            try:
                head = read_head(repository)
                if head != expected:
                    raise head_moved(expected, head)
                lock.rename(repository / MAIN)
            except BaseException:
                lock.unlink(missing_ok=True)
                raise
        finally:
            draft.unlink(missing_ok=True)
        fsync_folder(lock.parent)


def write_fence(repository: Path, fence: WriterFence, *, expected: CommitId | None, patience: float) -> None:
    """Refuses from now on every attempt that was begun before; durable when it returns.

    A push may move the head at the same moment: that refuses them as well.

    Raises:
        HeadMoved: ``main`` does not point to ``expected``, or another fence was written.
        edgewright.errors.Waiting: code ``repository_busy``.
    """
    with sole_writer(repository, deadline=time.monotonic() + patience):
        _hold(repository, fence)
        head = read_head(repository)
        if head != expected:
            raise head_moved(expected, head)
        _store_fence(repository, fence.number + 1, fence.change)


def raise_fence(repository: Path, change: str, *, once: bool, patience: float) -> None:
    """Refuses from now on every attempt that was begun before; durable when it returns.

    Args:
        once: not if the newest fence is of this change.

    Raises:
        edgewright.errors.Waiting: code ``repository_busy``.
    """
    with sole_writer(repository, deadline=time.monotonic() + patience):
        number, newest = _read_fence(repository)
        if not (once and newest == change):
            _store_fence(repository, number + 1, change)


def _store_fence(repository: Path, number: int, change: str) -> None:
    draft = repository / f"{FENCE}.draft"
    draft.unlink(missing_ok=True)
    _write_draft(draft, f"{number} {change}")
    draft.rename(repository / FENCE)
    fsync_folder(repository)


def read_fence(repository: Path) -> int:
    """The number of the newest fence; 0 where none was ever written.

    Raises:
        edgewright.errors.Stalled: code ``repository_damaged``.
    """
    return _read_fence(repository)[0]


def _read_fence(repository: Path) -> tuple[int, str]:
    """Number and change; see ``read_fence``."""
    try:
        line = (repository / FENCE).read_text("ascii", errors="replace")
    except FileNotFoundError:
        return 0, ""
    number, _, change = line.rstrip("\n").partition(" ")
    if not number.isdecimal():
        raise damaged(f"{FENCE} does not begin with a number")
    return int(number), change


def _hold(repository: Path, fence: WriterFence | None) -> None:
    """Lets an attempt go on that no other has overtaken; call it as ``sole_writer``."""
    if fence is not None and fence.number != read_fence(repository):
        raise overtaken(fence)


def _clear_away(draft: Path, lock: Path) -> None:
    """Removes what a writer of ours left when it was killed; no other lives, for we are the sole writer.

    The lock goes first: without its draft nobody would know it as ours.
    """
    try:
        if lock.samefile(draft):
            lock.unlink()
    except FileNotFoundError:
        pass
    draft.unlink(missing_ok=True)


def _write_draft(draft: Path, line: str) -> None:
    with draft.open("xb") as file:
        file.write(line.encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


def head_moved(expected: CommitId | None, head: CommitId | None) -> HeadMoved:
    """The refusal to build upon a commit that is no longer the head."""
    return HeadMoved(
        f"The branch main points to {head or 'nothing'}, not to {expected or 'nothing'}.",
        hint="Read the head again and repeat the change on top of it.",
    )


def overtaken(fence: WriterFence) -> HeadMoved:
    """The refusal of an attempt that began before another one, which found nothing to change."""
    return HeadMoved(
        f"Another attempt has written its fence since this one of {fence.change} began.",
        hint="Read again what is wanted, and the head, and repeat the change on top of it.",
    )


@contextmanager
def sole_writer(repository: Path, *, deadline: float) -> Iterator[None]:
    """Excludes every other writer of ours, in this and other processes; see the module for what it is for.

    Args:
        deadline: by ``time.monotonic()``.

    Raises:
        edgewright.errors.Waiting: code ``repository_busy`` at the deadline.
        FileNotFoundError: the repository is gone.
    """
    with locked(repository / WRITER_LOCK, deadline=deadline, reason="another change is being written"):
        yield


@contextmanager
def locked(path: Path, *, deadline: float, reason: str) -> Iterator[int]:
    """Holds a file, made if it is missing, locked; yields its descriptor.

    Args:
        deadline: by ``time.monotonic()``.
        reason: completes the sentence "The repository is busy: ".

    Raises:
        edgewright.errors.Waiting: code ``repository_busy`` at the deadline.
        FileNotFoundError: its folder is gone.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    with os.fdopen(descriptor, "rb") as file:
        while not try_lock(file.fileno()):
            _pause(deadline, reason)
        yield descriptor


def try_lock(descriptor: int) -> bool:
    """Whether the file is now locked by us; the kernel drops the lock when it is closed, or the process dies."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _link_lock(draft: Path, lock: Path, *, deadline: float, stale_after: float) -> None:
    while True:
        try:
            os.link(draft, lock)
        except FileExistsError:
            if not remove_if_stale(lock, stale_after=stale_after):
                _pause(deadline, f"{MAIN}.lock is held")
        else:
            return


def remove_if_stale(lock: Path, *, stale_after: float) -> bool:
    """Removes a lock file older than ``stale_after`` seconds; call it as ``sole_writer``.

    Returns:
        Whether the lock is gone.
    """
    if is_stale(lock, stale_after=stale_after):
        lock.unlink(missing_ok=True)
    return not lock.exists()


def is_stale(lock: Path, *, stale_after: float) -> bool:
    """Whether a lock file is there and older than ``stale_after`` seconds."""
    try:
        return time.time() - lock.stat().st_mtime >= stale_after
    except FileNotFoundError:
        return False


def _pause(deadline: float, reason: str) -> None:
    """Waits a moment for another writer; there is no event to wait for between processes."""
    if time.monotonic() >= deadline:
        raise busy(reason)
    time.sleep(random.uniform(0.001, 0.01))  # noqa: S311 - spreads the writers, protects nothing
