"""Questions before something that cannot be taken back. A script answers them beforehand, with ``--yes``."""

import sys

import typer

from edgewright.cli.failures import CliError, ExitCode


def can_ask() -> bool:
    """Whether a person sees the question and can answer it."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def require_yes(question: str, *, yes: bool) -> None:
    """Returns if the answer is yes.

    Raises:
        CliError: it is no, or there is nobody to ask and no ``--yes``.
    """
    if yes:
        return
    _demand_terminal()
    if not typer.confirm(question, err=True):
        raise CliError("Nothing was changed.")


def require_name(name: str, *, yes: bool) -> None:
    """Returns if the name was typed, whatever the case; raises like ``require_yes``."""
    if yes:
        return
    _demand_terminal()
    typed = typer.prompt(
        f"Type the name of the cluster to confirm ({name})", default="", show_default=False, err=True
    )
    if typed.strip().lower() != name.lower():
        raise CliError("Nothing was changed: that is not the name of the cluster.")


def _demand_terminal() -> None:
    if not can_ask():
        raise CliError(
            "Nothing was changed: this needs a confirmation, and there is no terminal to ask on.",
            "Scripts say --yes.",
            ExitCode.USAGE,
        )
