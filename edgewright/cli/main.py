"""The command line `edgewright`: registers the commands, and turns every expected trouble into a sentence."""

import os
import sys
from typing import Annotated, NoReturn

import typer
from pydantic import ValidationError

from edgewright import __version__
from edgewright.cli import admin, agent_image, doctor, down, up
from edgewright.cli.client_settings import ClientSettings
from edgewright.cli.commands import (
    chart,
    cluster_changes,
    cluster_check_in,
    cluster_creation,
    cluster_edge,
    cluster_edit,
    cluster_ending,
    cluster_list,
    cluster_verbs,
    cluster_views,
    cluster_wait,
    fleet_views,
    flux,
    secret,
    template,
    token,
    webhook,
)
from edgewright.cli.commands.options import example
from edgewright.cli.failures import CliError, ExitCode, of_product, of_settings, of_system
from edgewright.errors import EdgewrightError
from edgewright.settings import Settings

app = typer.Typer(
    name="edgewright",
    help="Commissions edge Kubernetes clusters and keeps them for life.",
    epilog=(
        "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not found, 4 refused in the present state, "
        "5 unavailable or not in time, 6 not authenticated or not allowed."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_HERE = "This machine"
_GATEWAY = "Through a gateway, here or elsewhere"

app.command("up", rich_help_panel=_HERE)(up.up)
app.command("down", rich_help_panel=_HERE)(down.down)
app.command("doctor", rich_help_panel=_HERE)(doctor.doctor)


@app.command("agent", rich_help_panel=_HERE)
def agent() -> NoReturn:
    """Run the edge's agent, inside its pod."""
    # In the place of this process: what the command line has loaded would stay in the agent's memory.
    os.execv(sys.executable, [sys.executable, "-P", "-m", "edgewright.agent"])  # noqa: S606 - no shell is wanted


cluster = typer.Typer(no_args_is_help=True)

for _command in (
    *cluster_creation.COMMANDS,
    *cluster_wait.COMMANDS,
    *cluster_changes.COMMANDS,
    *cluster_edit.COMMANDS,
    *cluster_ending.COMMANDS,
    *cluster_list.COMMANDS,
    *cluster_views.COMMANDS,
    *cluster_edge.COMMANDS,
    *cluster_check_in.COMMANDS,
    *cluster_verbs.COMMANDS,
):
    _command.join(cluster)

app.add_typer(
    admin.app,
    name="admin",
    help="Set up, back up and restore this machine's installation.",
    rich_help_panel=_HERE,
)
app.add_typer(
    agent_image.app,
    name="agent-image",
    help="Build the agent's image, show it, carry it to nodes.",
    rich_help_panel=_HERE,
)
app.add_typer(cluster, name="cluster", help="Commission, watch and delete clusters.", rich_help_panel=_GATEWAY)
app.command("events", rich_help_panel=_GATEWAY, epilog=example("events --cluster press-shop --since 2h"))(
    fleet_views.events
)
app.command("residue", rich_help_panel=_GATEWAY, epilog=example("residue"))(fleet_views.residue)
app.add_typer(secret.app, name="secret", help="Seal secrets for a cluster.", rich_help_panel=_GATEWAY)
app.add_typer(chart.app, name="chart", help="Charts that edges can get.", rich_help_panel=_GATEWAY)
app.add_typer(
    template.app,
    name="template",
    help="Helm chart templates: which chart and values clusters get.",
    rich_help_panel=_GATEWAY,
)
app.add_typer(flux.app, name="flux", help="Manage the Flux that edges get.", rich_help_panel=_GATEWAY)
app.add_typer(token.app, name="token", help="Manage the tokens of people and scripts.", rich_help_panel=_GATEWAY)
app.add_typer(webhook.app, name="webhook", help="Manage where notifications go.", rich_help_panel=_GATEWAY)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"edgewright {__version__}")
        raise typer.Exit


@app.callback()
def edgewright(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Commissions edge Kubernetes clusters and keeps them for life."""


def main() -> NoReturn:
    """Runs the command that the arguments name, and exits.

    Wrong usage, Ctrl-C and a closed pipe are Typer's to answer; a defect keeps its trace.
    """
    try:
        app()
    except CliError as error:
        sys.exit(_told(error))
    except EdgewrightError as error:
        sys.exit(_told(of_product(error)))
    except ValidationError as error:
        if error.title not in {Settings.__name__, ClientSettings.__name__}:
            raise
        sys.exit(_told(of_settings(error)))
    except OSError as error:
        sys.exit(_told(of_system(error)))
    sys.exit(ExitCode.OK)


def _told(error: CliError) -> int:
    """Says on stderr what is wrong and what to do about it; returns the exit code."""
    sys.stderr.write(f"edgewright: {error.sentence}\n")
    for line in (error.hint or "").splitlines():
        sys.stderr.write(f"  {line}\n")
    return int(error.exit_code)
