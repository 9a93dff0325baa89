"""Changes what is at a place for what was restored; what was there is moved aside, never overwritten or removed."""

import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from edgewright.adapters.git.objects import fsync_folder


def move_aside(paths: Iterable[Path], at: datetime) -> Sequence[Path]:
    """Moves what is there of these into a folder beside it, on the same disk: moving is renaming. Durable.

    Args:
        at: names the folders; two restores never share one.

    Returns:
        The folders, sorted.
    """
    used: set[Path] = set()
    for path in paths:
        if os.path.lexists(path):
            aside = path.parent / f"before-restore-{at:%Y%m%dT%H%M%S.%f}Z"
            aside.mkdir(mode=0o700, exist_ok=True)
            path.rename(aside / path.name)
            used.add(aside)
    for aside in used:
        fsync_folder(aside)
        fsync_folder(aside.parent)
    return sorted(used)


def put(drafts: Iterable[tuple[Path, Path]]) -> None:
    """Renames each draft to its place, which is free; durable when it returns."""
    folders: set[Path] = set()
    for draft, place in drafts:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.rename(place)
        folders |= {place.parent, place.parent.parent}
    for folder in folders:
        fsync_folder(folder)
