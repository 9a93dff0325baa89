"""Repositories read whole, object by object, for whoever asks what a disk has done to them.

By GitPython, as ADR 3 says of all reading for which nobody waits.
"""

import re
from pathlib import Path

from git import InvalidGitRepositoryError, NoSuchPathError, Repo
from git.exc import BadName, GitCommandError

from edgewright.adapters.git.bundles import PLACE
from edgewright.adapters.git.commands import git_environment
from edgewright.adapters.git.layout import ARCHIVE
from edgewright.adapters.git.refs import MAIN
from edgewright.ports.git_server import CommitId

INSPECTION_SECONDS = 600.0
"""That one repository may take."""
_ID = re.compile(r"\b[0-9a-f]{40}\b")
_WHENCE = "broken link from"
"""Begins a line about an object that is whole, and misses another one."""
_MOST_CHARACTERS = 300
_MOST_OBJECTS = 10


def places(root: Path) -> list[str]:
    """The places of all repositories, in service and archived; also of those that Git would not recognise."""
    found = (folder.relative_to(root).as_posix() for kind in ("", ARCHIVE) for folder in (root / kind).glob("*.git"))
    return sorted(place for place in found if PLACE.fullmatch(place))


def damage_of(folder: Path, *, wanted: CommitId | None = None) -> str | None:
    """What is wrong with a repository, as a sentence; None: each object is there, and is what was written.

    The centre may go on meanwhile. What is archived while it is read is not damaged, and is found in the archive.

    Args:
        wanted: a commit that its edge has applied.
    """
    try:
        with Repo(folder, expand_vars=False) as repo:
            repo.git.update_environment(**git_environment({"GIT_DIR": str(folder)}))
            seems_damaged = _complaint(repo) is not None
            damage = _complaint(repo) if seems_damaged else None  # the centre may have packed it, the first time
            damage = damage or _lack(repo, wanted)
            return damage if folder.exists() else None
    except NoSuchPathError:
        return None
    except InvalidGitRepositoryError:
        return "It has lost its file HEAD, so Git does not recognise it."
    except OSError as error:
        return f"It cannot be read: {error.strerror or type(error).__name__}."


def _complaint(repo: Repo) -> str | None:
    try:
        repo.git.fsck("--full", "--no-dangling", "--no-progress", kill_after_timeout=INSPECTION_SECONDS)
    except GitCommandError as error:
        lines = f"{error.stdout}\n{error.stderr}".splitlines()
        objects = dict.fromkeys(_ID.findall("\n".join(line for line in lines if _WHENCE not in line)))
        if not objects:
            return f"Git says: {' '.join(error.stderr.split())[:_MOST_CHARACTERS]}."
        paths = _paths(repo)
        named = [paths.get(each, f"object {each[:12]}") for each in objects]
        more = f" and {len(named) - _MOST_OBJECTS} more" if len(named) > _MOST_OBJECTS else ""
        return f"Missing, or not what was written: {', '.join(named[:_MOST_OBJECTS])}{more}."
    return None


def _lack(repo: Repo, wanted: CommitId | None) -> str | None:
    try:
        if wanted is not None:
            repo.commit(wanted)
    except (BadName, ValueError):
        return f"It lacks the commit {wanted}, which its edge has."
    return None


def _paths(repo: Repo) -> dict[str, str]:
    """Files of ``main`` by object; none if not even its folders can be read."""
    try:
        listed = repo.git.ls_tree("-r", "-z", MAIN)
    except GitCommandError:
        return {}
    entries = (entry.partition("\t") for entry in listed.split("\0") if entry)
    return {about.split(" ")[2]: path for about, _, path in entries}
