"""Copies of single repositories of a running centre, and putting an earlier one back, as an operator would."""

import ctypes
import errno
import fcntl
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from threading import Lock

from tools.chaos.journal import Journal
from tools.chaos.put_backs import PutBack

KINDS = {"repository copy": 5, "repository put back": 5}
KEPT = 24
AT_ONCE = 4
"""Repositories that are copied one after the other."""
WRITER_LOCK = "edgewright.writer"
LOCK_SECONDS = 3.0
UNFINISHED = shutil.ignore_patterns("*.lock", "incoming-*", "tmp_*", "edgewright.draft")
OF_A_LIFE = ("Commission ", "Take away ", "Remove the workloads ")
"""How commits of a commissioning or a removal begin. A copy of before one of them is a copy of another life: its
cluster would have to be recreated, which is not what this strike is about."""
EXCHANGE, HERE = 2, -100
"""Linux: RENAME_EXCHANGE, AT_FDCWD."""


@dataclass(frozen=True)
class Copy:
    cluster: str
    folder: Path
    began: float
    ended: float


class RepositoryCopies:
    """Copies the repositories below one folder, and puts earlier copies back."""

    def __init__(self, root: Path, copies: Path, journal: Journal, random: Random) -> None:
        self._root, self._folder, self._journal, self._random = root, copies, journal, random
        self._copies: list[Copy] = []
        self._number = 0
        self._one_at_a_time = Lock()
        copies.mkdir(exist_ok=True)

    def do(self, kind: str) -> bool:
        """One of ``KINDS``; False: it cannot be done at this moment. Blocks."""
        with self._one_at_a_time:
            return self._copy() if kind == "repository copy" else self._put_back()

    def _copy(self) -> bool:
        """Copies those that were written to last: their clusters still live, and go on."""
        heads = [(head.stat().st_mtime, head.parents[2]) for head in self._root.glob("*.git/refs/heads/main")]
        copied = [self._copy_one(folder) for _, folder in sorted(heads, reverse=True)[:AT_ONCE]]
        while len(self._copies) > KEPT:
            shutil.rmtree(self._copies.pop(0).folder)
        return any(copied)

    def _copy_one(self, folder: Path) -> bool:
        self._number += 1
        target, began = self._folder / f"copy-{self._number}.git", self._journal.now()
        try:
            with _sole_writer(folder):
                head = _head(folder)
                shutil.copytree(folder, target, ignore=UNFINISHED)
                (target / "refs/heads").mkdir(parents=True, exist_ok=True)
                (target / "refs/heads/main").write_text(f"{head}\n")  # a push may have moved it meanwhile
            whole = _git(target, "fsck", "--connectivity-only") is not None
        except (OSError, shutil.Error, TimeoutError):
            whole = False
        if not whole:
            shutil.rmtree(target, ignore_errors=True)
            return False
        copy = Copy(folder.name.removesuffix(".git"), target, began, self._journal.now())
        self._journal.killed("repository copy", [copy.cluster])
        self._copies.append(copy)
        return True

    def _put_back(self) -> bool:
        """The first copy, in an order that is drawn, since which something was committed."""
        for copy in self._random.sample(self._copies, len(self._copies)):
            folder = self._root / f"{copy.cluster}.git"
            with suppress(OSError, TimeoutError):
                with _sole_writer(folder):
                    if not _is_older(copy, folder):
                        continue
                    draft, began = copy.folder.with_suffix(".draft"), self._journal.now()
                    shutil.copytree(copy.folder, draft)
                    _exchange(draft, folder)
                self._journal.put_back(PutBack(copy.cluster, copy.began, copy.ended, began, self._journal.now()))
                shutil.rmtree(draft, ignore_errors=True)  # a push into what was there may still be under way
                # Copies of what came after this one are of a history that is no more.
                self._copies = [c for c in self._copies if c.cluster != copy.cluster or c.began <= copy.began]
                return True
        self._copy()  # of what lives now; who asks again finds something
        return False


def _is_older(copy: Copy, folder: Path) -> bool:
    """Whether the copy lacks something, and nothing but changes of the same life."""
    since = _git(folder, "log", "--format=%s", f"{_head(copy.folder)}..main")
    if not since or any(subject.startswith(OF_A_LIFE) for subject in since.splitlines()):
        return False
    return _generation(copy.folder) == _generation(folder)


def _generation(folder: Path) -> str:
    """The generation in the centre's newest commit: new hardware adds none if nothing has to be taken away."""
    fences = _git(folder, "log", "--format=%(trailers:key=Edgewright-Fence,valueonly,separator=)", "main") or ""
    return next(fence.partition("/")[0] for fence in fences.splitlines() if fence)


def _head(folder: Path) -> str:
    return _git(folder, "rev-parse", "--verify", "main") or ""


def _git(folder: Path, *arguments: str) -> str | None:
    """What git prints; None if it fails."""
    done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def _exchange(one: Path, other: Path) -> None:
    """At no moment is there nothing in the place of either."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(HERE, os.fsencode(one), HERE, os.fsencode(other), EXCHANGE):
        number = ctypes.get_errno()
        raise OSError(number, errno.errorcode.get(number, ""), str(one))


@contextmanager
def _sole_writer(folder: Path) -> Iterator[None]:
    """No commit of the centre is made meanwhile. One of a push may be: who pushes has to look after that himself."""
    until = time.monotonic() + LOCK_SECONDS
    with (folder / WRITER_LOCK).open("r+b") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise TimeoutError from None
                time.sleep(0.01)
        yield
