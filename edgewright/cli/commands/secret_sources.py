"""Where the values of secrets are read from: stdin and files, never arguments. Nothing of them is shown."""

import sys
from collections.abc import Sequence
from pathlib import Path

from edgewright.cli.commands.screen import say
from edgewright.cli.failures import CliError, ExitCode
from edgewright.domain.kubernetes_names import check_secret_key
from edgewright.errors import Invalid

LARGEST_BYTES = 1024 * 1024
"""Limit for all keys of one Secret; the gateway refuses more."""
MOST_KEYS = 1000
"""Limit for one request; the gateway refuses more."""


def read_value(source: str) -> bytes:
    """The bytes of ``-``, which is stdin, or of ``@FILE``.

    Raises:
        CliError: it cannot be read, or is too large.
    """
    if source != "-":
        return read_file(Path(source.removeprefix("@")))
    if sys.stdin.isatty():
        say("Type the value and end it with Ctrl-D.")
    return _bounded(sys.stdin.buffer.read(LARGEST_BYTES + 1))


def read_file(file: Path) -> bytes:
    """The bytes of a file; one more than is allowed at most is read.

    Raises:
        CliError: it cannot be read, or is too large.
    """
    try:
        with file.open("rb") as stream:
            return _bounded(stream.read(LARGEST_BYTES + 1))
    except OSError as error:
        raise CliError(f"The file {file} cannot be read ({error.strerror}).", exit_code=ExitCode.USAGE) from error


def read_files(files: Sequence[str], env_files: Sequence[Path]) -> dict[str, bytes]:
    """Key -> value, of several files.

    Args:
        files: each ``KEY=PATH``, or ``PATH``, whose key is the file's name.
        env_files: with lines ``KEY=VALUE``.

    Raises:
        CliError: one cannot be read or understood, a key is there twice, or all together are too large.
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
    if len(values) > MOST_KEYS:
        raise CliError(f"One request may set {MOST_KEYS} keys; these are {len(values)}.", exit_code=ExitCode.USAGE)
    _bounded(b"".join(values.values()))
    return values


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
        raise CliError(f"{where}: the key {key} is there twice.", exit_code=ExitCode.USAGE)
    values[key] = value


def _bounded(value: bytes) -> bytes:
    if len(value) > LARGEST_BYTES:
        raise CliError(
            f"All keys of one Secret together may have {LARGEST_BYTES} bytes; this has more.",
            exit_code=ExitCode.REFUSED,
            code="secret_too_large",
        )
    return value
