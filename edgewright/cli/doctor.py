"""`edgewright doctor`: says in plain words what is wrong, and what to do about it."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.text import Text

from edgewright.cli.checks import Check, CheckVerdict, machine_checks
from edgewright.cli.commands.screen import show_json
from edgewright.cli.endpoints import read_endpoints
from edgewright.cli.failures import ExitCode, of_settings
from edgewright.cli.invocation import typed
from edgewright.cli.local import local_settings
from edgewright.cli.share.served import as_running

_STYLES = {CheckVerdict.OK: "green", CheckVerdict.WARNING: "yellow", CheckVerdict.WRONG: "bold red"}


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    repositories: Annotated[
        bool, typer.Option("--repositories", help="Also read every object in every Git repository.")
    ] = False,
) -> None:
    """Check this machine and its installation. Exits with 1 if something is wrong.

    Example: edgewright doctor --json
    """
    examined = _examine(repositories=repositories)
    if as_json:
        show_json([asdict(check) for check in examined.checks])
    else:
        _show(examined)
    if any(check.verdict is CheckVerdict.WRONG for check in examined.checks):
        raise typer.Exit(ExitCode.FAILED)


@dataclass(frozen=True)
class _Examined:
    """What was found. ``idle``: nothing runs here that more could be asked of."""

    checks: Sequence[Check]
    idle: bool = False


def _examine(*, repositories: bool) -> _Examined:
    try:
        settings = local_settings()
    except ValidationError as error:
        trouble = of_settings(error)
        return _Examined([Check("settings", CheckVerdict.WRONG, trouble.sentence, trouble.hint or "")])
    from edgewright.cli.service_checks import service_checks  # noqa: PLC0415 - slow, and useless without settings

    endpoints = read_endpoints(settings.home)
    settings = as_running(settings, endpoints)
    checks = [*machine_checks(settings), *asyncio.run(service_checks(settings, endpoints))]
    if repositories:
        from edgewright.cli.repository_checks import repository_checks  # noqa: PLC0415 - GitPython is slow to load

        checks += repository_checks(settings)
    idle = endpoints is None and settings.temporal_address is None
    return _Examined([*([_not_running(settings.home)] if idle else []), *checks], idle)


def _not_running(home: Path) -> Check:
    sentence = f"Edgewright is not running in {home}. Start it with `{typed('up')}`."
    return Check("running", CheckVerdict.WARNING, sentence)


def _show(examined: _Examined) -> None:
    """Every finding; while nothing runs, one sentence that says so, and what would keep it from starting."""
    screen = Console(highlight=False, soft_wrap=True)
    shown = examined.checks
    if examined.idle:
        first, *others = shown
        screen.print(Text(first.sentence))
        shown = [check for check in others if check.verdict is CheckVerdict.WRONG]
        if not shown:
            return
        screen.print(Text("First fix what is wrong:\n"))
    for check in shown:
        line = Text()
        line.append(f"{check.verdict:<8}", style=_STYLES[check.verdict])
        line.append(f"{check.name:<28} {check.sentence}")
        screen.print(line)
        if check.fix and check.verdict is not CheckVerdict.OK:
            screen.print(Text(f"{'':<8}{'':<28} {check.fix}", style="dim"))
    if not examined.idle:
        wrong = sum(check.verdict is CheckVerdict.WRONG for check in shown)
        found = "1 problem" if wrong == 1 else f"{wrong or 'No'} problems"
        screen.print(Text(f"\n{found} found."))
