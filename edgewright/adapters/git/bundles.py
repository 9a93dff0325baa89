"""Repositories as single files: Git bundles, which Git itself writes while others commit, and checks when it reads.

A bundle holds one state of ``main`` with everything that leads to it; a repack that goes on beside does not matter.
"""

import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

from edgewright.adapters.git.commands import run_git
from edgewright.adapters.git.commits import is_commit_id
from edgewright.adapters.git.failures import damaged, storage_errors
from edgewright.adapters.git.layout import ARCHIVE, is_whole, repository_folder, write_repository
from edgewright.adapters.git.objects import fsync_folder
from edgewright.adapters.git.refs import MAIN, read_head
from edgewright.errors import EdgewrightError, Waiting
from edgewright.ports.git_server import CommitId

BUNDLE_TIMEOUT = 600.0
"""Seconds that one repository may take."""
PLACE = re.compile(
    r"(?P<uuid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.git"
    rf"|{ARCHIVE}/(?P<archived>[0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})"
    r"-(?:[0-9a-f]{40}|empty)(?:-[0-9]+)?\.git"
)
"""Where a repository lives below the root, in service or archived."""
_TRIES = 3


def in_service(root: Path) -> list[str]:
    """Places of the repositories that are in service, sorted."""
    return _places(root, root.glob("*.git"))


def archived(root: Path) -> list[str]:
    """Places of the repositories in the archive, sorted."""
    return _places(root, (root / ARCHIVE).glob("*.git"))


def repository_of(place: str) -> UUID:
    """Whose repository lives at a place; ``ValueError`` if no repository can."""
    match = PLACE.fullmatch(place)
    if match is None:
        raise ValueError("not the place of a repository")
    return UUID(match["uuid"] or match["archived"])


def write_bundle(folder: Path, bundle: Path) -> CommitId | None:
    """Writes a repository to a new file; returns the commit of ``main`` in it, None (and no file) while it has none.

    Raises:
        FileNotFoundError: the repository is not there (any more): it was archived meanwhile.
        edgewright.errors.EdgewrightError: it cannot be read.
    """
    for attempt in range(_TRIES):
        try:
            if not is_whole(folder):
                raise FileNotFoundError(folder)
            if read_head(folder) is None:
                return None
            run_git(folder, ["bundle", "create", str(bundle), MAIN], timeout=BUNDLE_TIMEOUT)
            return _head_in(bundle)
        except EdgewrightError:
            bundle.unlink(missing_ok=True)
            if is_whole(folder) and attempt == _TRIES - 1:
                raise
    raise FileNotFoundError(folder)


def read_bundle(bundle: Path | None, folder: Path, head: CommitId | None) -> None:
    """Makes the new repository ``folder`` from a bundle; every object is checked.

    Args:
        bundle: None for a repository without a commit.
        head: what ``main`` has to be in the end.

    Raises:
        edgewright.errors.Stalled: code ``repository_damaged``: the bundle does not hold that.
    """
    with storage_errors():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor() as pool:
            write_repository(folder, pool)
        if bundle is not None:
            # One pack, whatever the number of objects: the limit below which Git would unpack it is 1.
            fetch = ["-c", "fetch.unpackLimit=1", "fetch", "--quiet", "--no-tags", str(bundle), f"{MAIN}:{MAIN}"]
            try:
                run_git(folder, fetch, timeout=BUNDLE_TIMEOUT)
            except Waiting as failure:
                raise damaged(f"{bundle.name} cannot be read as a Git bundle") from failure
            (folder / "FETCH_HEAD").unlink(missing_ok=True)
        if read_head(folder) != head:
            raise damaged(f"{folder.name} does not have the head that it should have")
        fsync_folder(folder / "objects" / "pack")
        fsync_folder(folder)


def return_from_archive(root: Path, repository: UUID) -> bool:
    """Puts a repository that is in the archive only back into service; returns whether it did."""
    with storage_errors():
        if is_whole(repository_folder(root, repository)):
            return False
        kept = [root / place for place in archived(root) if repository_of(place) == repository]
        if not kept:
            return False
        max(kept, key=lambda folder: folder.stat().st_mtime_ns).rename(repository_folder(root, repository))
        fsync_folder(root)
        return True


def discard(folder: Path) -> None:
    """Removes a folder with all that is in it; nothing happens if it is not there."""
    shutil.rmtree(folder, ignore_errors=True)


def _places(root: Path, folders: Iterator[Path]) -> list[str]:
    places = (folder.relative_to(root).as_posix() for folder in folders if is_whole(folder))
    return sorted(place for place in places if PLACE.fullmatch(place))


def _head_in(bundle: Path) -> CommitId:
    with bundle.open("rb") as file:
        for line in file:
            head, _, ref = line.rstrip(b"\n").partition(b" ")
            if ref == MAIN.encode() and is_commit_id(head.decode("ascii", errors="replace")):
                return head.decode("ascii")
            if not line.strip():
                break
    raise damaged(f"{bundle.name} holds no {MAIN}")
