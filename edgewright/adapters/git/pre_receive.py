"""The rules for pushes, as a ``pre-receive`` hook: started by git in the repository, once per push.

Reads ``<old> <new> <ref>`` lines from standard input. Exit code 0 accepts all of them, 1 refuses all; each
reason is one sentence on standard error, which git shows to the person who pushes. It runs without
site-packages, so it may import nothing but the standard library, PyYAML, and those modules of ours that keep to
these, too.

A push to a driving repository may change ``by-hand/`` alone. A shared repository is people's own: a push may change
any path there, and the first one makes ``main``.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    sys.path.append(os.environ["EDGEWRIGHT_PACKAGES"])

from edgewright.adapters.git.push_changes import (
    ABSENT,
    TooMuch,
    TreeDifference,
    Trees,
    UnreadableTree,
    changed_entries,
)
from edgewright.adapters.git.push_objects import reason_against_objects
from edgewright.adapters.git.push_size import reason_against_size
from edgewright.adapters.git.tree_format import EXECUTABLE, FILE, FOLDER, SUBMODULE, SYMLINK
from edgewright.domain.own_objects import OwnObjects
from edgewright.domain.repository_paths import check_path, printable
from edgewright.errors import Invalid

MAIN = "refs/heads/main"
MAX_CHANGED = 10_000
"""Changed files and folders in one push. A few nested trees can name billions of files."""

_OWN_LINE = re.compile(rb"Edgewright-[A-Z][A-Za-z-]*:")
_MAX_SENTENCES = 5
_NOTHING = "0" * 40
_MODES = frozenset({FILE, EXECUTABLE, FOLDER})
_TOO_MANY = f"The push changes more than {MAX_CHANGED} files and folders: push less at a time."


class Update(NamedTuple):
    """One ref that the push wants to move; an all-zero ID stands for "not there"."""

    old: str
    new: str
    ref: str

    @property
    def base(self) -> str:
        """The commit that the push builds upon; empty: none."""
        return "" if self.old == _NOTHING else self.old


def main(lines: Iterable[str]) -> int:
    """Judges a push; returns the exit code."""
    folder = os.environ["EDGEWRIGHT_PUSH_FOLDER"]
    updates = [Update(*line.rstrip("\n").split(" ", 2)) for line in lines]
    refusals = [reason for reason in (reason_against(update, folder) for update in updates) if reason]
    for reason in refusals[:_MAX_SENTENCES]:
        sys.stderr.write(reason + "\n")
    return 1 if refusals else 0


def reason_against(update: Update, folder: str) -> str | None:
    """One sentence that says why the update is refused and what to do; None if it is accepted.

    Args:
        folder: the only one that the push may change; empty: it may change any path.
    """
    reason = _reason_against_ref(update, folder) or _reason_against_history(update)
    if reason is not None:
        return reason
    try:
        return (
            (_reason_against_messages(update) if folder else None)
            or reason_against_entries(changed_entries(update.base, update.new), folder)
            or reason_against_size(update.new, folder)
            or (_reason_against_objects(update, folder) if folder else None)
        )
    except TooMuch:
        return _TOO_MANY
    except UnreadableTree:
        return "The push could not be checked: git could not compare it with main; push again."


def reason_against_entries(entries: Iterable[TreeDifference], folder: str) -> str | None:
    """The same for what a push changes.

    Args:
        entries: folders included, each before what is in it.
        folder: the only one that the push may change; empty: it may change any path.
    """
    folder_outside: TreeDifference | None = None
    for number, entry in enumerate(entries, 1):
        if number > MAX_CHANGED:
            return _TOO_MANY
        if _is_inside(entry, folder):
            reason = _reason_against_entry(entry, folder)
            if reason is not None:
                return reason
        elif entry.is_folder:
            # What was changed in it is still to come, and names the culprit better.
            folder_outside = folder_outside or entry
        else:
            return _outside(entry, folder)
    return _outside(folder_outside, folder) if folder_outside else None


def _reason_against_ref(update: Update, folder: str) -> str | None:
    if update.ref != MAIN:
        return f"{printable(update.ref)} is refused: only {MAIN} takes pushes, so push your work to main."
    if update.new == _NOTHING:
        files = f"your files below {folder}/" if folder else "the files"
        return f"{MAIN} cannot be deleted: remove {files} instead, and push that."
    if folder and not update.base:
        return f"{MAIN} has no commit yet: wait until Edgewright has filled it, clone it, and push on top."
    return None


def _reason_against_history(update: Update) -> str | None:
    code = subprocess.run(
        ["git", "merge-base", "--is-ancestor", update.base or update.new, update.new],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    ).returncode
    if code == 1:
        return f"{MAIN} only moves forward: run `git pull --rebase` and push again, without force."
    if code != 0:
        return f"{MAIN} can only point to a commit: push a branch, not a tag or a single object."
    return None


def _reason_against_objects(update: Update, folder: str) -> str | None:
    own = OwnObjects.from_text(os.environ["EDGEWRIGHT_OWN_OBJECTS"])
    return reason_against_objects(update.old, update.new, folder, own)


def _reason_against_messages(update: Update) -> str | None:
    """By such lines the centre knows which of its commits exist: a secret would count as committed that is not."""
    with (
        subprocess.Popen(
            ["git", "rev-list", f"{update.old}..{update.new}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as listing,
        Trees() as trees,
    ):
        for commit in map(str.strip, listing.stdout or ()):
            if found := _OWN_LINE.search(trees.commit(commit)):
                listing.kill()
                return (
                    f"The message of commit {commit[:12]} says {found[0].decode()}, as only Edgewright's own commits "
                    f"do: take that out (`git rebase -i`), and push again."
                )
    if listing.returncode != 0:
        raise UnreadableTree
    return None


def _is_inside(entry: TreeDifference, folder: str) -> bool:
    return not folder or entry.path.startswith(folder + "/") or (entry.path == folder and entry.is_folder)


def _outside(entry: TreeDifference, folder: str) -> str:
    return (
        f"{printable(entry.path)} was changed, but only files below {folder}/ may be pushed: "
        f"undo that change, and use Edgewright's API for the rest of the repository."
    )


def _missing(folder: str) -> str:
    return (
        f"{folder}/ would be gone, and Flux prunes nothing when its folder is missing: "
        f"leave a file in it, such as {folder}/README.md."
    )


def _reason_against_entry(entry: TreeDifference, folder: str) -> str | None:
    if entry.mode == ABSENT:
        return _missing(folder) if entry.path == folder else None
    shown = printable(entry.path)
    if entry.mode == SYMLINK:
        return f"{shown} is a symbolic link: push a copy of the file itself."
    if entry.mode == SUBMODULE:
        return f"{shown} is a submodule: push the files themselves."
    if entry.mode not in _MODES:
        return f"{shown} has the unusual mode {entry.mode.decode()}: commit it again as a regular file."
    return _reason_against_path(entry.path)


def _reason_against_path(path: str) -> str | None:
    try:
        check_path(path)
    except Invalid as refusal:
        return f"{refusal.detail[:-1]}: rename it."
    return None


if __name__ == "__main__":
    sys.exit(main(sys.stdin))
