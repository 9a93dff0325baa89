"""`edgewright admin restore`: puts a backup in the place of what is there, which is moved aside.

Everything is made ready beside its place and checked first; only then do things change places, by renaming.
Temporal's file is not restored but moved aside: the next start rebuilds it from the database.
"""

import asyncio
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import typer

from edgewright.adapters.database.engine.engine import sqlite_file
from edgewright.adapters.database.engine.sole_gateway import sole_gateway
from edgewright.adapters.git.bundles import archived, discard, in_service, read_bundle, repository_of
from edgewright.adapters.git.layout import ARCHIVE, UNFINISHED
from edgewright.adapters.git.objects import fsync_folder
from edgewright.cli.backup_manifest import DATABASE, KeptRepository, Manifest, checked_manifest
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.home import being_restored, exclusive_home, owner_only, prepare_home
from edgewright.cli.ledger import ProcessLedger
from edgewright.cli.settling import Settled, bring_up_to_date, refuse_while_served, settle
from edgewright.errors import Stalled
from edgewright.settings import Settings

_DRAFT = ".restoring"
_TERMINATE = """temporal workflow terminate --query "WorkflowType = 'ManagedCluster'" --reason restored --yes"""


@dataclass(frozen=True)
class InstallationPlaces:
    """Where the parts of an installation are.

    Args:
        database: the SQLite file; None: PostgreSQL.
    """

    home: Path
    root: Path
    database: Path | None

    @property
    def database_files(self) -> list[Path]:
        """The file, and what SQLite keeps beside it."""
        file = self.database
        return [file.with_name(f"{file.name}{end}") for end in ("", "-wal", "-shm", "-journal")] if file else []


def restore(settings: Settings, backup: Path, *, keep_repositories: bool) -> None:
    """Restores one backup, and says what was moved where.

    Raises:
        CliError, EdgewrightError: something runs, or the backup is not whole or not of such an installation.
    """
    manifest = checked_manifest(backup)
    _refuse_other_database(manifest, settings)
    with owner_only(), _alone(settings):
        asyncio.run(refuse_while_served(settings))
        aside, settled = restore_backup(settings, backup, manifest, keep_repositories=keep_repositories)
    _report(settings, manifest, aside, settled)


def restore_backup(
    settings: Settings, backup: Path, manifest: Manifest, *, keep_repositories: bool = False
) -> tuple[Sequence[Path], Settled]:
    """Restores a backup that was checked; the caller holds the home.

    Returns:
        The folders that hold what was there before, and what had to be settled after that.

    Raises:
        CliError, EdgewrightError: before anything has changed places, if a part cannot be made ready.
    """
    places = InstallationPlaces(
        settings.home, settings.effective_git_root, sqlite_file(settings.effective_database_url)
    )
    there = _repositories_in(places.root) if keep_repositories else set()
    wanted = [kept for kept in manifest.repositories if repository_of(kept.place) not in there]
    drafts = {place.parent / _DRAFT for place in (places.home / "x", places.root / "x", places.database) if place}
    try:
        ready = [
            *_home_drafts(backup, manifest, places),
            *_database_draft(backup, manifest, places),
            *_repository_drafts(backup, wanted, places.root),
        ]
        if places.database:
            asyncio.run(bring_up_to_date(places.database.parent / _DRAFT / DATABASE, manifest))
        with being_restored(settings.home):
            in_the_way = _in_the_way(
                places, [kept.place for kept in wanted], manifest, whole_root=not keep_repositories
            )
            aside = _move_aside(in_the_way, datetime.now(UTC))
            _put_in_place(ready)
            settled = asyncio.run(settle(settings, manifest.made_at))
    finally:
        for draft in drafts:
            discard(draft)
    return aside, settled


def _repositories_in(root: Path) -> set[UUID]:
    """Whole ones. One that was archived after the backup counts: what is in the archive is newer."""
    return {repository_of(place) for place in (*in_service(root), *archived(root))}


def _in_the_way(
    places: InstallationPlaces, wanted: Sequence[str], manifest: Manifest, *, whole_root: bool
) -> Iterator[Path]:
    """What is moved aside if it is there. Temporal's file always: it knows things that the database does not.
    A key that the backup does not hold stays: it is of an installation that had none yet."""
    yield from places.database_files
    yield from sorted(places.home.glob("temporal.db*"))
    yield from (places.home / name for name in sorted({"admin-token", "ports.json"} | manifest.home.keys()))
    if whole_root:
        yield from sorted(places.root.glob("*.git"))
        yield from (places.root / name for name in (ARCHIVE, UNFINISHED))
    else:
        yield from (places.root / place for place in wanted)


def _home_drafts(backup: Path, manifest: Manifest, places: InstallationPlaces) -> list[tuple[Path, Path]]:
    draft = _fresh(places.home / _DRAFT)
    return [(_copied(backup / name, draft / name), places.home / name) for name in manifest.home]


def _database_draft(backup: Path, manifest: Manifest, places: InstallationPlaces) -> list[tuple[Path, Path]]:
    if places.database is None or manifest.database is None:
        return []
    draft = places.database.parent / _DRAFT
    draft.mkdir(mode=0o700, parents=True, exist_ok=True)
    (draft / DATABASE).unlink(missing_ok=True)
    return [(_copied(backup / DATABASE, draft / DATABASE), places.database)]


def _repository_drafts(backup: Path, wanted: Sequence[KeptRepository], root: Path) -> list[tuple[Path, Path]]:
    draft = _fresh(root / _DRAFT)
    for kept in wanted:
        read_bundle(backup / kept.file if kept.bundle else None, draft / kept.place, kept.head)
    return [(draft / kept.place, root / kept.place) for kept in wanted]


def _fresh(draft: Path) -> Path:
    """Empty, whatever an interrupted restore has left in it."""
    discard(draft)
    draft.mkdir(mode=0o700, parents=True)
    return draft


def _copied(source: Path, target: Path) -> Path:
    with source.open("rb") as original, target.open("xb") as copy:
        shutil.copyfileobj(original, copy)
        copy.flush()
        os.fsync(copy.fileno())
    return target


def _move_aside(paths: Iterable[Path], at: datetime) -> Sequence[Path]:
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


def _put_in_place(drafts: Iterable[tuple[Path, Path]]) -> None:
    """Renames each draft to its place, which is free; durable when it returns."""
    folders: set[Path] = set()
    for draft, place in drafts:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft.rename(place)
        folders |= {place.parent, place.parent.parent}
    for folder in folders:
        fsync_folder(folder)


@contextmanager
def _alone(settings: Settings) -> Iterator[None]:
    """Holds everything that a running part would hold.

    Raises:
        CliError, Stalled: something runs.
    """
    prepare_home(settings.home)
    file = sqlite_file(settings.effective_database_url)
    if file:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with exclusive_home(settings.home):
        if living := ProcessLedger(settings.home).living():
            raise CliError(
                f"Parts of a run that was killed still live: {', '.join(sorted(living))}.",
                "End them: edgewright down.",
                ExitCode.REFUSED,
            )
        with ExitStack() as held:
            try:
                held.enter_context(sole_gateway(settings.effective_database_url))
            except Stalled as other:
                raise CliError("A gateway serves from this database.", "Stop it.", ExitCode.REFUSED) from other
            yield


def _refuse_other_database(manifest: Manifest, settings: Settings) -> None:
    """Raises ``CliError`` if the backup is of an installation with another kind of database."""
    on_sqlite = sqlite_file(settings.effective_database_url) is not None
    if on_sqlite and manifest.database is None:
        raise CliError(
            "This backup holds no database: it is of an installation on PostgreSQL.",
            "Restore the dump first (pg_restore), and set EDGEWRIGHT_DATABASE_URL to that database.",
            ExitCode.REFUSED,
        )
    if not on_sqlite and manifest.database is not None:
        raise CliError(
            "This backup holds a SQLite database, and EDGEWRIGHT_DATABASE_URL names another one.",
            "Unset EDGEWRIGHT_DATABASE_URL.",
            ExitCode.REFUSED,
        )


def _report(settings: Settings, manifest: Manifest, aside: Sequence[Path], settled: Settled) -> None:
    made = f"{manifest.made_at:%Y-%m-%dT%H:%M:%SZ}"
    typer.echo(f"Restored the backup of {made}: {len(manifest.repositories)} repositories.")
    for folder in aside:
        typer.echo(f"What was there is in {folder}")
    if settled.returned:
        typer.echo(f"{settled.returned} repositories were archived after the backup; they are in service again.")
    if settled.put_back:
        typer.echo(f"{settled.put_back} have back what a deletion after the backup removed: secrets and workloads.")
    if settings.temporal_address:
        typer.echo(f"Before the start, end the workflows that know more than the database does:\n  {_TERMINATE}")
    typer.echo(f"What was revoked or deleted after {made} is valid again: docs/backup.md says what to look at.")
