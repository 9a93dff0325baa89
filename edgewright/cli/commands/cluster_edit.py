"""A cluster in the reader's own editor: what is saved there becomes the change that is sent."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from edgewright.cli.client import GatewayClient, connect
from edgewright.cli.commands.cluster_changes import (
    FIELDS,
    SeenCluster,
    field_of,
    see_cluster,
    send_change,
    show_change,
)
from edgewright.cli.commands.naming import did_you_mean
from edgewright.cli.commands.options import AsJson, ClusterName, Command, Panel, mapping_of
from edgewright.cli.commands.screen import Document, clean, result, say, show_json
from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.invocation import typed
from edgewright.domain.merge_patch import merge_patch_between
from edgewright.errors import Invalid

_EDITORS = ("editor", "vi", "nano")
"""Tried in this order when neither VISUAL nor EDITOR names one."""
_BEYOND_MENDING = frozenset({"precondition_failed", "deleting", "removed"})
"""Codes of refusals that another text does not avoid."""


def edit(cluster: ClusterName, as_json: AsJson = False) -> None:
    """Change a cluster in your editor (VISUAL or EDITOR): save and close it to send the change."""
    editor = _editor()
    with connect() as gateway:
        seen = see_cluster(gateway, cluster)
        descriptor, name = tempfile.mkstemp(prefix=f"edgewright-{seen.cluster.text}-", suffix=".yaml")
        os.close(descriptor)
        file = Path(name)
        try:
            after = _edited(gateway, seen, file, editor)
        except CliError as error:
            raise _kept(error, seen, file) from error.__cause__
        except KeyboardInterrupt:
            stopped = CliError("Interrupted; the change may not have been made.", exit_code=ExitCode.INTERRUPTED)
            raise _kept(stopped, seen, file) from None
        file.unlink(missing_ok=True)
    if after is not None:
        show_change(seen.document, after, as_json=as_json)
    elif as_json:
        show_json(seen.document)
    else:
        result(f"You changed nothing; {seen.cluster.text} stays as it is.")


def _edited(gateway: GatewayClient, seen: SeenCluster, file: Path, editor: list[str]) -> Document | None:
    """Has the text edited until it is taken. None: nothing differs."""
    before = _fields_of(seen.document)
    text = _yaml(before)
    complaint: CliError | None = None
    while True:
        file.write_text(_heading(seen, complaint) + text, "utf-8")
        _run(editor, file)
        edited = _without_heading(file)
        if edited == text or not edited.strip():
            if complaint is None or not edited.strip():
                return None
            raise complaint
        text = edited
        try:
            patch = _patch(before, edited, file)
            return send_change(gateway, seen, patch) if patch else None
        except CliError as error:
            mendable = error.exit_code in {ExitCode.USAGE, ExitCode.REFUSED} and error.code not in _BEYOND_MENDING
            if not mendable or not (sys.stdin.isatty() and sys.stderr.isatty()):
                raise
            complaint = error
            say(f"{clean(error.sentence)} Opening the editor again.")


def _fields_of(document: Document) -> dict[str, Any]:
    """What can be changed; what has no value is left out."""
    held = {field: field_of(document, field) for field in FIELDS}
    return {field: value for field, value in held.items() if value is not None}


def _patch(before: dict[str, Any], text: str, file: Path) -> Document:
    """The change from what was there to what the text says.

    Raises:
        CliError: the text is no YAML, or says what no cluster can be; exit code ``USAGE``.
    """
    wanted = {field: value for field, value in mapping_of(text, str(file)).items() if value is not None}
    for field in wanted:
        if field not in FIELDS:
            hint = did_you_mean(str(field), FIELDS) or f"There are {', '.join(FIELDS)}."
            raise CliError(f"There is no field called {clean(field)}.", hint, ExitCode.USAGE)
    labels = wanted.get("labels")
    for key, value in labels.items() if isinstance(labels, dict) else ():
        if not isinstance(key, str) or not isinstance(value, str):
            raise CliError(
                f"The label {clean(key)} is not text.",
                'Put key and value in quotes, as in line: "4".',
                ExitCode.USAGE,
            )
    try:
        patch = merge_patch_between(before, wanted)
    except Invalid as error:
        raise CliError(error.detail, error.hint, ExitCode.USAGE, code=error.code) from None
    return patch if isinstance(patch, dict) else {}


def _yaml(fields: dict[str, Any]) -> str:
    import yaml  # noqa: PLC0415 - slow, and this command alone writes YAML

    text: str = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=100)
    return text


def _heading(seen: SeenCluster, complaint: CliError | None) -> str:
    lines = [
        f"The cluster {seen.cluster.text}. Save and close to change it; save it unchanged, or empty, to cancel.",
        "A field that you take out goes back to its default.",
    ]
    if complaint is not None:
        lines += ["", f"Refused: {clean(complaint.sentence)}"]
        lines += [clean(line) for line in (complaint.hint or "").splitlines()]
    return "".join(f"# {line}".rstrip() + "\n" for line in lines)


def _without_heading(file: Path) -> str:
    """What was saved, without the comments at its beginning."""
    try:
        lines = file.read_text("utf-8").splitlines(keepends=True)
    except (OSError, UnicodeDecodeError) as error:
        raise CliError(f"{file} cannot be read as text any more.", exit_code=ExitCode.USAGE) from error
    first = next((number for number, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return "".join(lines[first:])


def _kept(error: CliError, seen: SeenCluster, file: Path) -> CliError:
    """The error, with the place of what was typed, if anything was."""
    if file.is_file() and file.read_bytes() == (_heading(seen, None) + _yaml(_fields_of(seen.document))).encode():
        file.unlink()
        return error
    hint = f"{error.hint}\n" if error.hint else ""
    return CliError(error.sentence, f"{hint}Your text is kept in {file}.", error.exit_code, code=error.code)


def _editor() -> list[str]:
    """The command that opens a file for the reader.

    Raises:
        CliError: there is none.
    """
    for variable in ("VISUAL", "EDITOR"):
        text = os.environ.get(variable, "").strip()
        if not text:
            continue
        try:
            return shlex.split(text)
        except ValueError:
            raise CliError(
                f"{variable} has a quotation mark without its other half.",
                f"Correct {variable}, or use `{typed('cluster set')}`.",
                ExitCode.USAGE,
            ) from None
    found = next(filter(None, map(shutil.which, _EDITORS)), None)
    if found is None or not sys.stdin.isatty():
        hint = f"Set EDITOR, or use `{typed('cluster set')}`."
        raise CliError("There is no editor to open: neither VISUAL nor EDITOR is set.", hint, ExitCode.USAGE)
    return [found]


def _run(editor: list[str], file: Path) -> None:
    """Opens the file and waits until it is closed."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        with _interrupts_are_the_editors():
            ended = subprocess.run([*editor, str(file)], check=False)
    except OSError as error:
        raise CliError(
            f"The editor {clean(editor[0])} cannot be started ({error.strerror}).",
            "VISUAL or EDITOR names it.",
            ExitCode.USAGE,
        ) from error
    if ended.returncode != 0:
        raise CliError(f"The editor ended with exit code {ended.returncode}; nothing was changed.")


@contextmanager
def _interrupts_are_the_editors() -> Iterator[None]:
    """Ctrl-C in an editor is a key like others. A handler, unlike ``SIG_IGN``, is not inherited."""

    def leave_to_it(_number: int, _frame: FrameType | None) -> None:
        """The editor has got it, too."""

    before = signal.signal(signal.SIGINT, leave_to_it)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


COMMANDS = (Command("edit", edit, Panel.LIFE, "cluster edit press-shop"),)
