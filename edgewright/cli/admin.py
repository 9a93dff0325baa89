"""`edgewright admin`: what an administrator does on the machine itself, for production installations too."""

import asyncio
import os

import typer

from edgewright.cli.endpoints import read_endpoints
from edgewright.cli.home import prepare_home
from edgewright.cli.local import local_settings, require_git

app = typer.Typer(no_args_is_help=True)


@app.callback()
def admin() -> None:
    """Set this machine's installation up."""


@app.command("init")
def init() -> None:
    """Bring database, repositories, charts, Temporal and the admin token up to date. Safe to repeat.

    `edgewright up` does the same by itself; with PostgreSQL and a Temporal cluster of your own, run this first.
    """
    settings = local_settings()
    require_git()
    os.umask(0o077)
    prepare_home(settings.home)
    from edgewright.cli import initialise  # noqa: PLC0415 - slow, and not wanted before the first refusals

    storage = asyncio.run(initialise.initialise_storage(settings))
    typer.echo("Database, repositories and charts are up to date.")
    endpoints = read_endpoints(settings.home)
    embedded = endpoints.temporal if endpoints else f"127.0.0.1:{settings.temporal_port}"
    address = settings.temporal_address or embedded
    asyncio.run(initialise.initialise_temporal(settings.model_copy(update={"temporal_address": address})))
    typer.echo(f"Temporal at {address} is prepared.")
    if settings.temporal_address:  # on a home of its own `edgewright up` does this, and knows the URL
        rebuilt = asyncio.run(initialise.rebuild_workflows(settings))
        typer.echo(f"Every cluster has its workflow{f'; {rebuilt} were started anew' if rebuilt else ''}.")
    typer.echo(f"Admin token: {storage.token_file}{' (new)' if storage.token_written else ''}")
