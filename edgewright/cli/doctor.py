"""`edgewright doctor`: says in plain words what is wrong, and what to do about it."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console
from rich.text import Text

from edgewright.cli.checks import Check, CheckVerdict, machine_checks
from edgewright.cli.failures import ExitCode, of_settings
from edgewright.cli.local import local_settings

_STYLES = {CheckVerdict.OK: "green", CheckVerdict.WARNING: "yellow", CheckVerdict.WRONG: "bold red"}


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
    repositories: Annotated[
        bool, typer.Option("--repositories", help="Read every object of every Git repository as well.")
    ] = False,
) -> None:
    """Check this machine and its installation; exit code 1 if something is wrong."""
    checks = _examine(repositories=repositories)
    if as_json:
        typer.echo(json.dumps([asdict(check) for check in checks], indent=2))
    else:
        _show(checks)
    if any(check.verdict is CheckVerdict.WRONG for check in checks):
        raise typer.Exit(ExitCode.FAILED)


def _examine(*, repositories: bool) -> list[Check]:
    try:
        settings = local_settings()
    except ValidationError as error:
        trouble = of_settings(error)
        return [Check("settings", CheckVerdict.WRONG, trouble.sentence, trouble.hint or "")]
    from edgewright.cli.service_checks import service_checks  # noqa: PLC0415 - slow, and useless without settings

    checks = [*machine_checks(settings), *asyncio.run(service_checks(settings))]
    if repositories:
        from edgewright.cli.repository_checks import repository_checks  # noqa: PLC0415 - GitPython is slow to load

        checks += repository_checks(settings)
    return checks


def _show(checks: Sequence[Check]) -> None:
    screen = Console(highlight=False, soft_wrap=True)
    for check in checks:
        line = Text()
        line.append(f"{check.verdict:<8}", style=_STYLES[check.verdict])
        line.append(f"{check.name:<28} {check.sentence}")
        screen.print(line)
        if check.fix and check.verdict is not CheckVerdict.OK:
            screen.print(Text(f"{'':<8}{'':<28} {check.fix}", style="dim"))
    wrong = sum(check.verdict is CheckVerdict.WRONG for check in checks)
    screen.print(Text(f"\n{wrong} wrong." if wrong else "\nNothing is wrong."))
