"""Log files of the children: bounded, whatever a child writes and however long it lives."""

import shutil
from pathlib import Path

LARGEST_BYTES = 10 * 1024 * 1024
"""A log that has grown beyond this is moved to ``.1``; the one before to ``.2``; older ones go."""


def bound(log: Path, *, largest: int = LARGEST_BYTES) -> bool:
    """Rotates a log that is too large, also while a child appends to it; returns whether it was.

    The file itself stays and is emptied, because the child holds it open; a line that is written during the copy
    may be lost.
    """
    try:
        if log.stat().st_size <= largest:
            return False
    except FileNotFoundError:
        return False
    newest, older = log.with_name(log.name + ".1"), log.with_name(log.name + ".2")
    try:
        if newest.exists():
            newest.replace(older)
        shutil.copyfile(log, newest)
    except OSError:
        # On a full disk the space is worth more than the old lines.
        newest.unlink(missing_ok=True)
    with log.open("r+b") as file:
        file.truncate(0)
    return True


def last_words(log: Path, *, longest: int = 200) -> str:
    """The last line of a log that is not empty, cut to a length; empty if there is none."""
    try:
        with log.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - 4096))
            lines = [line.strip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    except OSError:
        return ""
    return lines[-1][:longest] if lines else ""
