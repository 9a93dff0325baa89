"""`edgewright admin backup`: everything that cannot be rebuilt, in one folder, while everything runs.

The database is copied first and the repositories after it. So a repository may be ahead of the database, by what was
committed meanwhile, and never behind: whatever the database calls committed is in its repository.
"""

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from sqlalchemy.engine import URL, make_url

from edgewright import __version__
from edgewright.adapters.database.engine.engine import sqlite_file
from edgewright.adapters.database.engine.sqlite_copy import check_sqlite, copy_sqlite
from edgewright.adapters.git.bundles import archived, discard, in_service, repository_of, write_bundle
from edgewright.adapters.git.layout import remove_leftovers
from edgewright.adapters.git.objects import fsync_folder
from edgewright.cli.backup_manifest import (
    DATABASE,
    HOME_FILES,
    MANIFEST,
    BackupPart,
    KeptRepository,
    Manifest,
    part_of,
)
from edgewright.cli.endpoints import write_atomically
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.home import owner_only
from edgewright.settings import Settings

AT_ONCE = 2
"""Repositories that are read at once: a backup must not keep the centre from its work."""
_UNFINISHED = ".unfinished-"
_DAY = 24 * 3600.0


def backup(settings: Settings, folder: Path, *, without_database: bool) -> Path:
    """Makes one backup below ``folder``; returns the new folder.

    Raises:
        CliError: there is nothing to copy, or the database is not ours to copy.
    """
    with owner_only():
        return make_backup(settings, _database_to_copy(settings, without=without_database), folder)


def make_backup(settings: Settings, database: Path | None, folder: Path) -> Path:
    """Makes one backup below ``folder``; under its final name it is whole and on disk, or not there.

    Args:
        database: the SQLite file; None: it is kept elsewhere.

    Returns:
        The new folder, ``edgewright-<UTC time>``.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    remove_leftovers(folder, _UNFINISHED, older_than=_DAY)
    made_at = datetime.now(UTC)
    name = f"edgewright-{made_at:%Y%m%dT%H%M%S.%f}Z"
    draft = folder / f"{_UNFINISHED}{name}"
    draft.mkdir(mode=0o700)
    try:
        manifest = _fill(draft, settings, database, made_at)
        write_atomically(draft / MANIFEST, manifest.model_dump_json(indent=1) + "\n")
        for inside in (*(path for path in draft.rglob("*") if path.is_dir()), draft):
            fsync_folder(inside)
        draft.rename(folder / name)
        fsync_folder(folder)
    finally:
        discard(draft)
    return folder / name


def _fill(draft: Path, settings: Settings, database: Path | None, made_at: datetime) -> Manifest:
    copied = _copy_database(database, draft / DATABASE) if database else None
    home = {name: _copied(settings.home / name, draft / name) for name in HOME_FILES}
    return Manifest(
        edgewright=__version__,
        made_at=made_at,
        database=copied,
        home={name: part for name, part in home.items() if part},
        repositories=tuple(_keep_repositories(settings.effective_git_root, draft)),
    )


def _copy_database(database: Path, copy: Path) -> BackupPart:
    copy_sqlite(database, copy)
    check_sqlite(copy)
    return part_of(copy)


def _copied(source: Path, target: Path) -> BackupPart | None:
    try:
        shutil.copyfile(source, target)
    except FileNotFoundError:
        return None
    return part_of(target)


def _keep_repositories(root: Path, draft: Path) -> Sequence[KeptRepository]:
    """Those in service first: one that is archived meanwhile is found in the archive, which is looked at after."""
    kept = _keep(root, in_service(root), draft)
    there = {repository_of(each.place) for each in kept}
    return kept + _keep(root, [place for place in archived(root) if repository_of(place) not in there], draft)


def _keep(root: Path, places: Sequence[str], draft: Path) -> list[KeptRepository]:
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="bundle") as pool:
        return [kept for kept in pool.map(partial(_keep_one, root, draft), places) if kept]


def _keep_one(root: Path, draft: Path, place: str) -> KeptRepository | None:
    """None: it has been archived meanwhile."""
    bundle = draft / KeptRepository(place=place, head=None, bundle=None).file
    bundle.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        head = write_bundle(root / place, bundle)
    except FileNotFoundError:
        return None
    return KeptRepository(place=place, head=head, bundle=part_of(bundle) if head else None)


def _database_to_copy(settings: Settings, *, without: bool) -> Path | None:
    """The SQLite file; None if the database is to be left out.

    Raises:
        CliError: it is PostgreSQL, which has its own tool; or there is nothing yet.
    """
    file = sqlite_file(settings.effective_database_url)
    if file is None:
        if without:
            return None
        raise CliError(
            "The database is PostgreSQL: its own tool takes the copy, and takes it first.",
            f"{dump_command(settings.effective_database_url)}\n"
            "Then: edgewright admin backup --without-database FOLDER. So no repository is behind the dump.",
            ExitCode.REFUSED,
        )
    if without:
        raise CliError(
            "--without-database is for PostgreSQL; this database is a SQLite file, which is always copied.",
            "Leave the option out.",
            ExitCode.USAGE,
        )
    if not file.is_file():
        raise CliError(f"There is nothing to back up: there is no database {file}.", "Check EDGEWRIGHT_HOME.")
    return file


def dump_command(database_url: str) -> str:
    """What dumps a PostgreSQL database; without the password, which pg_dump takes from ~/.pgpass or asks for."""
    url = make_url(database_url).difference_update_query(["password"])
    shown = URL.create("postgresql", url.username, None, url.host, url.port, url.database, url.query)
    return f"First: pg_dump --format=custom --file=edgewright.dump '{shown.render_as_string()}'"
