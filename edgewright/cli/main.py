"""The command line `edgewright`: registers the commands, and turns every expected trouble into a sentence."""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, NoReturn, cast

import typer
import typer.core
import typer.main
from pydantic import ValidationError

from edgewright import __version__
from edgewright.cli import admin, agent_image, doctor, down, up
from edgewright.cli.client_settings import CHOSEN_CONTEXT
from edgewright.cli.commands import (
    api_request,
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
    completion,
    context,
    fleet_views,
    flux,
    repository,
    secret,
    template,
    token,
    upgrade,
    upgrade_list,
    webhook,
)
from edgewright.cli.commands.options import example, take_output
from edgewright.cli.failures import (
    CliError,
    ExitCode,
    of_product,
    of_settings,
    of_system,
    of_usage,
    shows_help,
    tell,
)
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
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_HERE = "This machine"
_GATEWAY = "Through a gateway, here or elsewhere"

app.command("up", rich_help_panel=_HERE)(up.up)
app.command("down", rich_help_panel=_HERE)(down.down)
app.command("doctor", rich_help_panel=_HERE)(doctor.doctor)

app.command("completion", rich_help_panel=_HERE, epilog=completion.EXAMPLE)(completion.completion)
app.command("login", rich_help_panel=_GATEWAY, epilog=context.LOGIN_EXAMPLE)(context.login)
app.command("logout", rich_help_panel=_GATEWAY, epilog=context.LOGOUT_EXAMPLE)(context.logout)
app.command("git-credential", rich_help_panel=_GATEWAY, epilog=context.GIT_EXAMPLE)(context.git_credential)
app.command("api", rich_help_panel=_GATEWAY, epilog=api_request.EXAMPLE)(api_request.api)

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
app.add_typer(upgrade.agents, name="agent", rich_help_panel=_GATEWAY)
app.add_typer(
    repository.app,
    name="repository",
    help="Git repositories that you push to and every edge reads.",
    rich_help_panel=_GATEWAY,
)
app.add_typer(flux.app, name="flux", help="Manage the Flux that edges get.", rich_help_panel=_GATEWAY)
app.add_typer(
    upgrade_list.app,
    name="upgrade",
    help="Follow upgrades of agents and of Flux, and call them off.",
    rich_help_panel=_GATEWAY,
)
app.add_typer(token.app, name="token", help="Manage the tokens of people and scripts.", rich_help_panel=_GATEWAY)
app.add_typer(context.app, name="context", help="The centres that you have logged in to.", rich_help_panel=_GATEWAY)
app.add_typer(webhook.app, name="webhook", help="Manage where notifications go.", rich_help_panel=_GATEWAY)


@upgrade.agents.callback(invoke_without_command=True)
def agent(invocation: typer.Context) -> None:
    """Upgrade the agents of edges; without a command, run the agent, inside its pod."""
    if invocation.invoked_subcommand is None:
        _demand_no_context("agent")
        # In the place of this process: what the command line has loaded would stay in the agent's memory.
        os.execv(sys.executable, [sys.executable, "-P", "-m", "edgewright.agent"])  # noqa: S606 - no shell is wanted


def _demand_no_context(command: str) -> None:
    if CHOSEN_CONTEXT.get() is not None:
        raise CliError(
            f"`edgewright {command}` acts on this machine; a context has no meaning for it.",
            "Leave --context out.",
            ExitCode.USAGE,
        )


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"edgewright {__version__}")
        raise typer.Exit


def _choose(name: str | None) -> None:
    if name is not None:
        CHOSEN_CONTEXT.set(name)


@app.callback()
def edgewright(
    invocation: typer.Context,
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", is_eager=True, callback=_version)
    ] = False,
    context: Annotated[
        str | None,
        typer.Option(
            "--context",
            metavar="NAME",
            help="Use this context, or `local`, for one command.",
            show_default=False,
            expose_value=False,
            callback=_choose,
            autocompletion=completion.contexts,
        ),
    ] = None,
) -> None:
    """Commissions edge Kubernetes clusters and keeps them for life."""
    command = invocation.invoked_subcommand
    panels = dict(_panels(cast(typer.core.TyperGroup, invocation.command)))
    if command is not None and panels.get(command) == _HERE:
        _demand_no_context(command)


def command_tree() -> typer.core.TyperGroup:
    """All commands. Whatever goes through a gateway takes `--context`, too; what takes `--json`, also `--output`."""
    # Unlike get_group, it has the options for completion.
    root = cast(typer.core.TyperGroup, typer.main.get_command(app))
    (option,) = (each for each in root.params if each.name == "context")
    below: list[Any] = [root.commands[name] for name, panel in _panels(root) if panel == _GATEWAY]
    for command in _commands([root]):
        take_output(command)
    for command in _commands(below):
        if all(each.name != option.name for each in command.params):
            command.params.append(option)
    return root


def _commands(commands: Iterable[Any]) -> Iterator[Any]:
    """These, and those of groups among them, without the groups."""
    for command in commands:
        if isinstance(command, typer.core.TyperGroup):
            yield from _commands(command.commands.values())
        else:
            yield command


def _panels(root: typer.core.TyperGroup) -> list[tuple[str, str]]:
    """Each command, with the part of the help in which it stands."""
    commands: dict[str, Any] = dict(root.commands)
    return [(name, command.rich_help_panel) for name, command in commands.items()]


def main() -> NoReturn:
    """Runs the command that the arguments name, and exits.

    Ctrl-C and a closed pipe are Typer's to answer; a defect keeps its trace.
    """
    CHOSEN_CONTEXT.set(None)
    _replace_closed_streams()
    try:
        code = command_tree().main(prog_name="edgewright", standalone_mode=False)
    except CliError as error:
        _end(error)
    except typer.TyperException as error:
        if shows_help(error):
            sys.exit(ExitCode.USAGE)
        _end(of_usage(error))
    except typer.Abort:
        _end(CliError("Stopped: the input ended before all was answered."))
    except EdgewrightError as error:
        _end(of_product(error))
    except ValidationError as error:
        if error.title != Settings.__name__:
            raise
        _end(of_settings(error))
    except OSError as error:
        _end(of_system(error))
    sys.exit(code if isinstance(code, int) else ExitCode.OK)


def _replace_closed_streams() -> None:
    """Has a stream that the shell has closed, as `<&-` does, read as empty or lead nowhere; Python leaves None."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115 - open until the process ends


def _end(error: CliError) -> NoReturn:
    code = tell(error, sys.argv[1:])
    try:
        sys.stdout.flush()
    except OSError:  # such as a full disk, which has been told; Python would try again, and fail again, at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)
