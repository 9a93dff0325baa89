"""What keeps a bare repository small and usable: stale locks removed, loose objects packed."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from edgewright.adapters.git.commands import run_git
from edgewright.adapters.git.layout import remove_leftovers
from edgewright.adapters.git.refs import is_stale, remove_if_stale, sole_writer, try_lock

GC_TIMEOUT = 600.0
"""Seconds that one repack may take."""
KEEPER_LOCK = "edgewright.keeper"

_DAY = 24 * 3600.0
_MANY_PACKS = 20
_SAMPLE = [f"{number:02x}" for number in range(0x07, 0x100, 0x10)]


def remove_stale_locks(repository: Path, *, stale_after: float, patience: float) -> None:
    """Removes lock files that a dead git process left behind, and what was left of an interrupted push."""
    locks = [lock for lock in _locks(repository) if is_stale(lock, stale_after=stale_after)]
    if locks:
        with sole_writer(repository, deadline=time.monotonic() + patience):
            for lock in locks:
                remove_if_stale(lock, stale_after=stale_after)
    remove_leftovers(repository / "objects", "tmp_objdir-", older_than=_DAY)


def repack_if_worth_it(repository: Path, *, loose_limit: int) -> None:
    """Packs everything reachable once there are about ``loose_limit`` loose objects, or many packs.

    What is unreachable stays for two weeks: it may belong to a commit or a push that is under way.
    """
    if _loose_objects(repository) > loose_limit or _packs(repository) > _MANY_PACKS:
        with _sole_keeper(repository) as alone:
            if alone:
                run_git(repository, ["gc", "--quiet", "--prune=2.weeks.ago"], timeout=GC_TIMEOUT)


@contextmanager
def _sole_keeper(repository: Path) -> Iterator[bool]:
    """Whether nobody else of ours repacks now; git refuses a second one, and one is enough."""
    descriptor = os.open(repository / KEEPER_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    with os.fdopen(descriptor, "rb") as file:
        yield try_lock(file.fileno())


def _locks(repository: Path) -> Iterator[Path]:
    yield from repository.glob("*.lock")
    yield from (repository / "refs" / "heads").glob("*.lock")
    yield from (repository / "objects" / "info").rglob("*.lock")


def _loose_objects(repository: Path) -> int:
    """About how many loose objects there are: object IDs are random, so 16 of 256 folders stand for all."""
    return sum(_names(repository / "objects" / folder) for folder in _SAMPLE) * 256 // len(_SAMPLE)


def _packs(repository: Path) -> int:
    return sum(1 for _ in (repository / "objects" / "pack").glob("*.pack"))


def _names(folder: Path) -> int:
    try:
        return len(os.listdir(folder))  # noqa: PTH208 - counts names; Path objects would be thrown away
    except FileNotFoundError:
        return 0
