"""How a command ends when it does not succeed: one sentence, a hint, and an exit code that scripts can rely on."""

import errno
from enum import IntEnum

from pydantic import ValidationError

from edgewright.errors import (
    Conflict,
    EdgewrightError,
    Forbidden,
    NotFound,
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
        code: the stable code of the problem document that this came from, or None.
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
        self.code = code


_BY_BRANCH: tuple[tuple[type[EdgewrightError], ExitCode], ...] = (
    (Unauthenticated, ExitCode.NOT_ALLOWED),
    (Forbidden, ExitCode.NOT_ALLOWED),
    (NotFound, ExitCode.NOT_FOUND),
    (Conflict, ExitCode.REFUSED),
    (Refused, ExitCode.REFUSED),
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
    for problem in error.errors(include_input=False, include_url=False, include_context=False):
        message = problem["msg"].removeprefix("Value error, ")
        name = "_".join(str(part) for part in problem["loc"]).upper()
        if not name:
            lines.append(message)
        else:
            lines.append(f"{name if name.startswith('EDGEWRIGHT_') else f'EDGEWRIGHT_{name}'}: {message}")
    return CliError(
        "A setting cannot be used. " + "; ".join(lines) + ".",
        "Correct the environment variable, or unset it to get the default.",
        ExitCode.USAGE,
    )


def of_system(error: OSError) -> CliError:
    """Trouble with files and processes that a person can mend."""
    where = f": {error.filename}" if error.filename else ""
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return CliError(
            f"The disk is full{where}.",
            "Free some space, or move the home: EDGEWRIGHT_HOME names the folder.",
        )
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return CliError(
            f"This user may not write or read what is needed{where} ({error.strerror}).",
            "Correct owner and mode, or set EDGEWRIGHT_HOME to a folder of your own.",
        )
    return CliError(f"The system refused: {error.strerror or type(error).__name__}{where}.")
