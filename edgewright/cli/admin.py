"""`edgewright admin`: what an administrator does on the machine itself, for production installations too."""

import asyncio
import os
from pathlib import Path
from typing import Annotated

import typer

from edgewright.cli.endpoints import read_endpoints
from edgewright.cli.home import prepare_home, refuse_half_restored
from edgewright.cli.local import local_settings, require_git

app = typer.Typer(no_args_is_help=True)


@app.callback()
def admin() -> None:
    """Set this machine's installation up, back it up, restore it."""


@app.command("init")
def init(
    new_git_storage: Annotated[
        bool,
        typer.Option(
            "--new-git-storage",
            help="Start with empty Git storage. Only when all repositories are lost and there is no backup.",
        ),
    ] = False,
) -> None:
    """Create or upgrade database, repositories, charts, Temporal and the admin token; safe to repeat.

    `edgewright up` does this by itself. With your own PostgreSQL and Temporal cluster, run it first.
    """
    settings = local_settings()
    require_git()
    os.umask(0o077)
    prepare_home(settings.home)
    refuse_half_restored(settings.home)
    from edgewright.cli import initialise  # noqa: PLC0415 - slow, and not wanted before the first refusals

    storage = asyncio.run(initialise.initialise_storage(settings, new_git_storage=new_git_storage))
    typer.echo("Database, repositories and charts are up to date.")
    endpoints = read_endpoints(settings.home)
    address = settings.temporal_address or (endpoints.temporal if endpoints else None)
    if address:
        asyncio.run(initialise.initialise_temporal(settings.model_copy(update={"temporal_address": address})))
        typer.echo(f"Temporal at {address} is prepared.")
    else:
        typer.echo("Temporal is started and prepared by `edgewright up`.")
    if settings.temporal_address:  # on a home of its own `edgewright up` does this, and knows the URL
        rebuilt = asyncio.run(initialise.rebuild_workflows(settings))
        typer.echo(f"Every cluster has its workflow{f'; {rebuilt} were started anew' if rebuilt else ''}.")
    typer.echo(f"Admin token: {storage.token_file}{' (new)' if storage.token_written else ''}")


@app.command("backup")
def backup(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="Folder for backups; each one gets a new folder in it.")
    ],
    without_database: Annotated[
        bool,
        typer.Option("--without-database", help="Leave out the database; for PostgreSQL, which you dump first."),
    ] = False,
) -> None:
    """Copy everything that cannot be rebuilt into a new folder, while Edgewright runs.

    It holds the admin token in clear text and the hashes of all credentials: protect it like an admin token.
    """
    settings = local_settings()
    require_git()
    from edgewright.cli import backup as copying  # noqa: PLC0415 - slow, as above

    typer.echo(f"Backup: {copying.backup(settings, _absolute(folder), without_database=without_database)}")


@app.command("restore")
def restore(
    backup: Annotated[
        Path, typer.Argument(metavar="BACKUP", help="Folder of one backup, as `edgewright admin backup` printed it.")
    ],
    keep_repositories: Annotated[
        bool,
        typer.Option("--keep-repositories", help="Keep the repositories that exist, and restore only missing ones."),
    ] = False,
) -> None:
    """Restore a backup; what it replaces is moved aside, and the command says where.

    Stop everything first. Nothing changes unless the backup is complete.
    """
    settings = local_settings()
    require_git()
    from edgewright.cli import restore as restoring  # noqa: PLC0415 - slow, as above

    restoring.restore(settings, _absolute(backup), keep_repositories=keep_repositories)


def _absolute(folder: Path) -> Path:
    return folder.expanduser().absolute()
