"""Questions before something that cannot be taken back. A script answers them beforehand, with ``--yes``."""

import sys

from edgewright.cli.failures import CliError, ExitCode


def require_yes(question: str, *, yes: bool) -> None:
    """Returns if the answer is yes.

    Raises:
        CliError: it is no, or there is nobody to ask and no ``--yes``.
    """
    if not yes and _answer(f"{question} [y/N] ").lower() not in {"y", "yes"}:
        raise CliError("Nothing was changed.")


def require_name(name: str, *, yes: bool) -> None:
    """Returns if the name was typed, whatever the case; raises like ``require_yes``."""
    if not yes and _answer(f"Type the name of the cluster to confirm ({name}): ").lower() != name.lower():
        raise CliError("Nothing was changed: that is not the name of the cluster.")


def _answer(question: str) -> str:
    """One typed line. The question goes to stderr to the last character: stdout may be a file."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise CliError(
            "Nothing was changed: this needs a confirmation, and there is no terminal to ask on.",
            "Use --yes in scripts.",
            ExitCode.USAGE,
        )
    sys.stderr.write(question)
    sys.stderr.flush()
    return sys.stdin.readline().strip()


def ask_hidden(question: str, *, otherwise: str) -> str:
    """One line that is typed without being shown.

    Args:
        otherwise: what to do where there is no terminal.

    Raises:
        CliError: there is no terminal to ask on.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise CliError("There is no terminal to ask on.", otherwise, ExitCode.USAGE)
    import termios  # noqa: PLC0415 - few commands hide what is typed

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    hidden = [*before[:3], before[3] & ~termios.ECHO, *before[4:]]
    try:
        # What was typed ahead is kept: a pasted token may be quicker than the question.
        termios.tcsetattr(descriptor, termios.TCSADRAIN, hidden)
        sys.stderr.write(question)
        sys.stderr.flush()
        return sys.stdin.readline().strip()
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
        sys.stderr.write("\n")
        sys.stderr.flush()
