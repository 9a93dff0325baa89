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
        typer.Option("--new-git-storage", help="All repositories are lost, and there is no backup: begin without."),
    ] = False,
) -> None:
    """Bring database, repositories, charts, Temporal and the admin token up to date. Safe to repeat.

    `edgewright up` does the same by itself; with PostgreSQL and a Temporal cluster of your own, run this first.
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
    folder: Annotated[Path, typer.Argument(help="Where backups are kept; each one is a new folder in it.")],
    without_database: Annotated[
        bool,
        typer.Option("--without-database", help="Repositories only. For PostgreSQL, whose dump is taken before."),
    ] = False,
) -> None:
    """Copy everything that cannot be rebuilt to a new folder, while everything runs.

    It holds the admin token in clear and the hashes of all credentials: keep it as you keep an admin token.
    """
    settings = local_settings()
    require_git()
    from edgewright.cli import backup as copying  # noqa: PLC0415 - slow, as above

    typer.echo(f"Backup: {copying.backup(settings, _absolute(folder), without_database=without_database)}")


@app.command("restore")
def restore(
    backup: Annotated[Path, typer.Argument(help="One backup: the folder that `edgewright admin backup` has named.")],
    keep_repositories: Annotated[
        bool,
        typer.Option(
            "--keep-repositories", help="Leave the repositories that are there, and restore only those that are not."
        ),
    ] = False,
) -> None:
    """Put a backup in the place of what is there. That is moved aside; the command says where.

    Stop everything first. Nothing is touched unless the backup is whole.
    """
    settings = local_settings()
    require_git()
    from edgewright.cli import restore as restoring  # noqa: PLC0415 - slow, as above

    restoring.restore(settings, _absolute(backup), keep_repositories=keep_repositories)


def _absolute(folder: Path) -> Path:
    return folder.expanduser().absolute()
