"""How a command ends when it does not succeed: one sentence, a hint, and an exit code that scripts can rely on."""

import difflib
import errno
import json
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from enum import IntEnum
from http import HTTPStatus
from itertools import pairwise

import typer
from pydantic import ValidationError

# Typer's own kinds of wrong usage have no public name.
from typer._click.exceptions import BadParameter, MissingParameter, NoArgsIsHelpError, NoSuchOption, UsageError

from edgewright.cli.invocation import typed
from edgewright.domain.reasons import reason_of
from edgewright.errors import (
    Conflict,
    EdgewrightError,
    Forbidden,
    NotFound,
    PreconditionFailed,
    Refused,
    Stalled,
    Unauthenticated,
    Waiting,
)


class ExitCode(IntEnum):
    """What a command's exit code says; part of the interface of the command line."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    REFUSED = 4
    UNAVAILABLE = 5
    NOT_ALLOWED = 6
    INTERRUPTED = 130


class CliError(Exception):
    """A command cannot do what it was asked to.

    Args:
        sentence: what is wrong, for a person; free of secrets.
        hint: what to do next, or None.
        exit_code: what the command exits with.
        code: the stable code of the problem document that this came from; None: one for its exit code.
    """

    def __init__(
        self,
        sentence: str,
        hint: str | None = None,
        exit_code: ExitCode = ExitCode.FAILED,
        *,
        code: str | None = None,
    ) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint
        self.exit_code = exit_code
        self.code = code or exit_code.name.lower()


_BY_STATUS: dict[int, ExitCode] = {
    HTTPStatus.UNAUTHORIZED: ExitCode.NOT_ALLOWED,
    HTTPStatus.FORBIDDEN: ExitCode.NOT_ALLOWED,
    HTTPStatus.NOT_FOUND: ExitCode.NOT_FOUND,
    HTTPStatus.GONE: ExitCode.NOT_FOUND,
    HTTPStatus.REQUEST_TIMEOUT: ExitCode.UNAVAILABLE,
    HTTPStatus.CONFLICT: ExitCode.REFUSED,
    HTTPStatus.PRECONDITION_FAILED: ExitCode.REFUSED,
    HTTPStatus.PRECONDITION_REQUIRED: ExitCode.REFUSED,
    HTTPStatus.LOCKED: ExitCode.REFUSED,
    HTTPStatus.TOO_MANY_REQUESTS: ExitCode.UNAVAILABLE,
    HTTPStatus.BAD_GATEWAY: ExitCode.UNAVAILABLE,
    HTTPStatus.SERVICE_UNAVAILABLE: ExitCode.UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT: ExitCode.UNAVAILABLE,
}
"""Any other 4xx: the request is wrong as it stands, which is wrong usage, whether the command line or the gateway
finds out."""


_SUGGESTIONS, _CLOSE = 3, 0.7
"""How many options are suggested, and how much of a mistyped one has to be as it was meant, from 0 to 1."""
_COMMAND = re.compile("`[^`]*`")
_KEPT_SPACE = "\N{NO-BREAK SPACE}"


def of_status(status: int) -> ExitCode:
    """What a command exits with that was answered with an error."""
    wrong = HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR
    return _BY_STATUS.get(status, ExitCode.USAGE if wrong else ExitCode.FAILED)


_BY_BRANCH: tuple[tuple[type[EdgewrightError], ExitCode], ...] = (
    (Unauthenticated, ExitCode.NOT_ALLOWED),
    (Forbidden, ExitCode.NOT_ALLOWED),
    (NotFound, ExitCode.NOT_FOUND),
    (Conflict, ExitCode.REFUSED),
    (PreconditionFailed, ExitCode.REFUSED),
    (Refused, ExitCode.USAGE),
    (Stalled, ExitCode.REFUSED),
    (Waiting, ExitCode.UNAVAILABLE),
)


def of_product(error: EdgewrightError) -> CliError:
    """An error of Edgewright's own tree, as a command shows it."""
    exit_code = next((code for branch, code in _BY_BRANCH if isinstance(error, branch)), ExitCode.FAILED)
    sentence = f"{error.where}: {error.detail}" if error.where else error.detail
    return CliError(sentence, error.hint, exit_code, code=error.code)


def of_settings(error: ValidationError) -> CliError:
    """Settings that cannot be accepted, named by their environment variables; never their values."""
    lines = []
    for problem in error.errors(include_input=False, include_url=False):
        message = reason_of(problem)
        name = "_".join(str(part) for part in problem["loc"]).upper()
        if not name:
            lines.append(message)
        else:
            lines.append(f"{name if name.startswith('EDGEWRIGHT_') else f'EDGEWRIGHT_{name}'} {message}")
    return CliError(
        "A setting cannot be used. " + "; ".join(lines) + ".",
        "Correct the environment variable, or unset it to get the default.",
        ExitCode.USAGE,
    )


def of_system(error: OSError) -> CliError:
    """Trouble with files and processes that a person can mend."""
    where = f": {error.filename}" if error.filename else ""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        home = "Free some space, or move the home: EDGEWRIGHT_HOME names the folder."
        return CliError(f"The disk is full{where}.", home if where else "Free some space where the output goes.")
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return CliError(
            f"This user may not write or read what is needed{where} ({error.strerror}).",
            "Correct owner and mode, or set EDGEWRIGHT_HOME to a folder of your own.",
        )
    if isinstance(error, FileExistsError | NotADirectoryError) and error.filename:
        return CliError(
            f"{error.filename} is a file where a folder belongs.",
            "Move it away, or name another folder: EDGEWRIGHT_HOME and EDGEWRIGHT_GIT_ROOT do.",
            ExitCode.USAGE,
        )
    return CliError(
        f"The system refused: {error.strerror or type(error).__name__}{where}.",
        f"`{typed('doctor')}` looks for what is wrong on this machine.",
    )


def of_usage(error: typer.TyperException) -> CliError:
    """Arguments that make no command, and what to type instead."""
    context = error.ctx if isinstance(error, UsageError) else None
    if context is None:
        sentence = " ".join(error.format_message().split()).rstrip(".")
        return CliError(f"{sentence}.", f"`{typed('--help')}` explains it.", ExitCode(error.exit_code))
    path = context.command_path.partition(" ")[2]
    hints = [f"`{typed(f'{path} --help'.strip())}` explains it."]
    said = " ".join(error.format_message().split()).rstrip(".").replace(": ,", ": ")
    sentence, question, rest = said.partition(" Did you mean ")
    if isinstance(error, NoSuchOption):
        sentence = f"There is no option {error.option_name}"
        if error.possibilities:
            close = difflib.get_close_matches(error.option_name, error.possibilities, _SUGGESTIONS, cutoff=_CLOSE)
            hints.insert(0, f"Did you mean {' or '.join(close or sorted(error.possibilities))}?")
    elif question:
        hints.insert(0, f"Did you mean {rest.replace(chr(39), '').replace(', ', ' or ')}")
    elif isinstance(error, BadParameter) and isinstance(error.__cause__, ValidationError):
        sentence = _misfit(error, error.__cause__)
    elif isinstance(error, MissingParameter):
        hints.insert(0, " ".join(context.get_usage().split()))
    elif sentence.startswith("Got unexpected extra argument"):
        # Not repeated: it may be a secret in the wrong place.
        sentence = "There are more arguments than the command takes"
        hints.insert(0, " ".join(context.get_usage().split()))
    return CliError(f"{sentence.rstrip('.')}.", "\n".join(hints), ExitCode.USAGE)


def _misfit(error: BadParameter, cause: ValidationError) -> str:
    """A value that an option or argument does not take: Typer says it in the words of a library."""
    name = (error.param.get_error_hint() if error.param else "The value").replace("'", "")
    reason = reason_of(cause.errors(include_input=False, include_url=False)[0]).rstrip(".")
    return f"{name}: {reason}" if reason.startswith("'") else f"{name} {reason}"


def shows_help(error: typer.TyperException) -> bool:
    """Whether a command was called with nothing and has answered with its help."""
    return isinstance(error, NoArgsIsHelpError)


def tell(error: CliError, arguments: Sequence[str]) -> int:
    """Says on stderr what is wrong and what to do about it, as JSON if the arguments ask for it.

    Returns:
        The exit code.
    """
    if wants_json(arguments):
        document = {
            "code": error.code,
            "detail": error.sentence,
            "hint": error.hint,
            "exit_code": int(error.exit_code),
        }
        sys.stderr.write(f"{json.dumps(document)}\n")
    else:
        for line in lines_of(error, shutil.get_terminal_size().columns if sys.stderr.isatty() else None):
            sys.stderr.write(f"{line}\n")
    return int(error.exit_code)


def lines_of(error: CliError, room: int | None) -> list[str]:
    """An error as people read it.

    Args:
        room: columns of the terminal, at which lines are folded; None: no terminal shows it, and nothing is.
    """
    told = [("edgewright: ", error.sentence), *(("  ", line) for line in (error.hint or "").splitlines())]
    if room is None:
        return [begin + _steady(text) for begin, text in told]
    return [line for begin, text in told for line in _folded(_steady(text), room, begin)]


def _folded(text: str, room: int, begin: str) -> list[str]:
    """A text in lines of that width. A command between backticks stays whole, so that it can be copied."""
    whole = _COMMAND.sub(lambda command: command[0].replace(" ", _KEPT_SPACE), text)
    lines = textwrap.wrap(
        whole,
        room,
        initial_indent=begin,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_KEPT_SPACE, " ") for line in lines] or [begin.rstrip()]


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether arguments that may not even parse ask for JSON."""
    ours = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    together = {"--json", "-ojson", "-o=json", "--output=json"}
    return bool(together & set(ours)) or any(
        option in {"-o", "--output"} and value == "json" for option, value in pairwise(ours)
    )


def _steady(text: str) -> str:
    """Text free of anything that could steer a terminal: parts of it may come from elsewhere."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
