"""Where the values of secrets are read from: prompts, stdin, files, literals. Nothing of them is shown."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgewright.cli.commands.screen import say
from edgewright.cli.failures import CliError, ExitCode
from edgewright.domain.kubernetes_names import check_secret_key
from edgewright.errors import Invalid

LARGEST_BYTES = 1024 * 1024
"""Limit for all keys of one Secret; the gateway refuses more."""
MOST_KEYS = 1000
"""Limit for one request; the gateway refuses more."""
MOST_NAMED = 5
"""Keys that one sentence names."""
TERMINAL_LINE = 4095
"""Bytes of a line that Linux hands on from a terminal; macOS has less."""


@dataclass(frozen=True, slots=True)
class ValueRules:
    """What is done with values that were read.

    Args:
        keep_newline: whether one newline at the end stays; None: it does, and the reader is told of the choice.
        allow_empty: whether a value may be empty.
    """

    keep_newline: bool | None
    allow_empty: bool

    def applied(self, values: Mapping[str, bytes]) -> dict[str, bytes]:
        """Key -> value as it is sealed; says what became of newlines.

        Raises:
            CliError: a value is empty and may not be.
        """
        ended = [key for key, value in values.items() if value.endswith(b"\n")]
        kept = self.keep_newline is not False
        if ended:
            say(_about_newlines(ended, kept=kept, is_chosen=self.keep_newline is not None))
        taken = {key: value if kept else _without_newline(value) for key, value in values.items()}
        empty = [key for key, value in taken.items() if not value]
        if empty and not self.allow_empty:
            raise CliError(
                f"The value of {_listed(empty)} is empty. Nothing was sent.",
                "Add --allow-empty if it has to be. A pipe is empty when the command before it failed.",
                ExitCode.USAGE,
                code="secret_empty",
            )
        return taken


def read_value(source: str | None, key: str, rules: ValueRules) -> bytes:
    """The value of a key from ``-``, which is stdin, or from ``@FILE``; a terminal asks for it.

    Args:
        source: None: as ``-``.

    Raises:
        CliError: it cannot be read, is too large, or the rules refuse it.
    """
    if source not in (None, "-"):
        value = read_file(Path((source or "").removeprefix("@")))
    elif sys.stdin.isatty():
        value = _typed_twice(key)
    else:
        value = _bounded(sys.stdin.buffer.read(LARGEST_BYTES + 1))
    return rules.applied({key: value})[key]


def read_file(file: Path) -> bytes:
    """The bytes of a file; one more than is allowed at most is read.

    Raises:
        CliError: it cannot be read, or is too large.
    """
    try:
        with file.open("rb") as stream:
            return _bounded(stream.read(LARGEST_BYTES + 1))
    except OSError as error:
        raise CliError(
            f"The file {file} cannot be read ({error.strerror}).",
            "Name a readable file; - reads stdin. Nothing was sent.",
            ExitCode.USAGE,
        ) from error


def read_keys(
    files: Sequence[str], env_files: Sequence[Path], literals: Sequence[str], rules: ValueRules
) -> dict[str, bytes]:
    """Key -> value, of everything that options name.

    Args:
        files: each ``KEY=PATH``, or ``PATH``, whose key is the file's name.
        env_files: with lines ``KEY=VALUE``.
        literals: each ``KEY=VALUE``.

    Raises:
        CliError: one cannot be read or understood, a key is there twice, all together are too large, there is none,
            or the rules refuse a value.
        Invalid: a key that Kubernetes would refuse.
    """
    values: dict[str, bytes] = {}
    for text in files:
        key, equals, path = text.partition("=")
        file = Path(path if equals else text)
        _add(values, check_secret_key(key if equals else file.name), read_file(file), f"--from-file {file}")
    for env_file in env_files:
        for number, (key, value) in _lines(env_file):
            _add(values, key, value, f"{env_file}, line {number}")
    for literal in literals:
        _add(values, *_of_literal(literal), "--from-literal")
    if literals:
        say("Values of --from-literal show in the process list and in your shell's history: use it for no secret.")
    if not values:
        raise CliError("There is no key in these files.", "Each line is KEY=VALUE. Nothing was sent.", ExitCode.USAGE)
    if len(values) > MOST_KEYS:
        raise CliError(
            f"One request may set {MOST_KEYS} keys; these are {len(values)}.",
            "Set them in several requests.",
            ExitCode.USAGE,
        )
    _bounded(b"".join(values.values()))
    return rules.applied(values)


def _of_literal(literal: str) -> tuple[str, bytes]:
    """Key and value; neither is shown when it is wrong: it may be a secret all the same."""
    key, equals, value = literal.partition("=")
    if not equals:
        raise CliError(
            "--from-literal takes KEY=VALUE.", "For example --from-literal username=press.", ExitCode.USAGE
        )
    try:
        return check_secret_key(key), os.fsencode(value)
    except Invalid as error:
        raise CliError(
            "--from-literal: what is before the = is not a key of a Secret.", error.hint, ExitCode.USAGE
        ) from None


def _typed_twice(key: str) -> bytes:
    """What somebody types without seeing it: twice, because nobody can read a sealed value back to find a slip.

    The second time also stops a paste of several lines, of which a prompt takes the first only.

    Raises:
        CliError: the two differ, the input ended, or a line was too long for a terminal.
    """
    value = _typed(f"Value of {key} (not shown; Enter ends it): ")
    if value and _typed("The same again: ") != value:
        raise CliError(
            "The two values differ. Nothing was sent.",
            "Try again; pass a value of several lines as @FILE.",
            ExitCode.USAGE,
            code="secret_mistyped",
        )
    return value


def _typed(prompt: str) -> bytes:
    from getpass import getpass  # noqa: PLC0415 - no other command reads what is not shown

    try:
        typed = getpass(prompt).encode()
    except KeyboardInterrupt:
        say("")  # what follows does not stand behind the prompt
        raise
    except EOFError:
        say("")
        raise CliError("No value was typed. Nothing was sent.", "Type it, or pipe it in.", ExitCode.USAGE) from None
    except UnicodeError:  # its text has what was typed in it
        raise CliError("The value is not UTF-8.", "Pass it as @FILE.", ExitCode.USAGE) from None
    if len(typed) >= TERMINAL_LINE:
        raise CliError(
            f"A terminal passes on {TERMINAL_LINE} bytes of a line and cuts the rest. Nothing was sent.",
            "Pass the value as @FILE.",
            ExitCode.USAGE,
        )
    return typed


def _about_newlines(keys: Sequence[str], *, kept: bool, is_chosen: bool) -> str:
    if not kept:
        return f"Removed the newline at the end of {_listed(keys)}."
    advice = "" if is_chosen else " --drop-newline removes it."
    return f"Kept the newline at the end of {_listed(keys)}.{advice}"


def _without_newline(value: bytes) -> bytes:
    return value.removesuffix(b"\n").removesuffix(b"\r") if value.endswith(b"\n") else value


def _listed(keys: Sequence[str]) -> str:
    shown = ", ".join(keys[:MOST_NAMED])
    return shown if len(keys) <= MOST_NAMED else f"{shown} and {len(keys) - MOST_NAMED} more"


def _lines(file: Path) -> list[tuple[int, tuple[str, bytes]]]:
    """Number, key and value of each line that is neither blank nor a comment.

    A value is what is behind the first ``=``, as it is: quotes and spaces are part of it.
    """
    found = []
    for number, line in enumerate(read_file(file).removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        stripped = line.removesuffix(b"\r").lstrip()
        if not stripped or stripped.startswith(b"#"):
            continue
        key, equals, value = stripped.partition(b"=")
        if not equals:
            raise CliError(
                f"{file}, line {number} has no =.",
                "Each line is KEY=VALUE, blank, or a comment that begins with #.",
                ExitCode.USAGE,
            )
        found.append((number, (_key(key, file, number), value)))
    return found


def _key(key: bytes, file: Path, number: int) -> str:
    """The key of a line; what is no key may be a part of a value and is not shown."""
    try:
        return check_secret_key(key.decode("ascii", errors="replace"))
    except Invalid as error:
        raise CliError(
            f"{file}, line {number}: what is before the = is not a key of a Secret.",
            error.hint,
            ExitCode.USAGE,
        ) from None


def _add(values: dict[str, bytes], key: str, value: bytes, where: str) -> None:
    if key in values:
        raise CliError(
            f"{where}: the key {key} is there twice.", "Give each key once. Nothing was sent.", ExitCode.USAGE
        )
    values[key] = value


def _bounded(value: bytes) -> bytes:
    if len(value) > LARGEST_BYTES:
        raise CliError(
            f"All keys of one Secret together may have {LARGEST_BYTES} bytes; this has more.",
            "Kubernetes allows no more. Store large data elsewhere, and only seal the key to it.",
            ExitCode.USAGE,
            code="secret_too_large",
        )
    return value
