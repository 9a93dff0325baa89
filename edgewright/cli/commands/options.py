"""Arguments and options that several commands have, and how a command joins its group."""

import json
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, wraps
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.main

from edgewright.cli.commands import completion
from edgewright.cli.commands.screen import MachineForm, shown_as
from edgewright.cli.failures import CliError, ExitCode


class Form(StrEnum):
    """How a command shows what it has found."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


ClusterName = Annotated[
    str,
    typer.Argument(
        metavar="CLUSTER",
        help="Name or UUID of the cluster.",
        show_default=False,
        autocompletion=completion.clusters,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the API's document as JSON.")]
Output = Annotated[
    Form,
    typer.Option(
        "--output",
        "-o",
        metavar="FORM",
        help="table; wide: every column in full; json, yaml: the API's document; name: only names.",
    ),
]
Watch = Annotated[bool, typer.Option("--watch", "-w", help="Keep showing changes, until Ctrl-C.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation; use it in scripts.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until it is done, and show progress.")]
Timeout = Annotated[str, typer.Option("--timeout", metavar="DURATION", help="How long to wait, such as 30s or 2h.")]
Chart = Annotated[
    str | None,
    typer.Option(
        "--chart",
        metavar="NAME|UUID",
        help="Helm chart template to deliver.",
        show_default=False,
        autocompletion=completion.charts,
    ),
]
Values = Annotated[
    Path | None,
    typer.Option("--values", metavar="FILE", help="YAML or JSON file with values for the chart.", show_default=False),
]

DEFAULT_TIMEOUT = "5m"


class Panel(StrEnum):
    """The part of a group's help in which a command stands."""

    LIFE = "Lifecycle"
    SIGHT = "View"
    EDGE = "Edge"
    STEERING = "Control"


@dataclass(frozen=True)
class Command:
    """A command of a group. ``example``: what stands under its help, without the program's name."""

    name: str
    run: Callable[..., None]
    panel: Panel
    example: str

    def join(self, group: typer.Typer) -> None:
        """Makes it a command of the group."""
        group.command(self.name, rich_help_panel=self.panel.value, epilog=example(self.example))(self.run)


def take_output(command: Any) -> None:
    """Gives a command that takes `--json`, and no `--output` of its own, `--output json|yaml|name`.

    Args:
        command: as Typer has made it.
    """
    names = [each.name for each in command.params]
    if "as_json" not in names or "output" in names:
        return
    option = copy(_output_option())
    if command.context_settings.get("ignore_unknown_options"):
        option.opts = ["--output"]  # what begins with -o may be a secret in the wrong place, and would be repeated
    command.params.insert(names.index("as_json"), option)
    command.callback = _showing(command.callback)


@cache
def _output_option() -> Any:
    carrier = typer.Typer()
    carrier.command()(_take_form)
    command: Any = typer.main.get_command(carrier)
    return next(each for each in command.params if each.name == "output")


def _take_form(
    output: Annotated[
        MachineForm | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FORM",
            help="json, yaml: the API's document; name: only names.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Declares the option."""


def _showing(run: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(run)
    def shown(*, output: MachineForm | None, as_json: bool, **given: Any) -> Any:
        if output is None:
            return run(as_json=as_json, **given)
        form = MachineForm(output)
        if as_json and form is not MachineForm.JSON:
            raise contradiction(form)
        with shown_as(form):
            return run(as_json=True, **given)

    return shown


def contradiction(form: str) -> CliError:
    """What is wrong with asking for JSON and for another form."""
    return CliError(f"--json and --output {form} contradict each other.", "Give only one of them.", ExitCode.USAGE)


def labels_of(texts: Sequence[str]) -> dict[str, str]:
    """Labels that were given as ``key=value``.

    Raises:
        CliError: one is not of that form, or a key is there twice.
    """
    labels: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise CliError("A label is given as key=value.", "For example --label site=sheffield.", ExitCode.USAGE)
        if key in labels:
            raise CliError(f"The label {key} is there twice.", "Name each label once.", ExitCode.USAGE)
        labels[key] = value
    return labels


def values_of(file: Path) -> dict[str, Any]:
    """The values of a chart in a file.

    Raises:
        CliError: it cannot be read, or holds something else than a mapping that JSON can express.
    """
    try:
        text = file.read_text("utf-8")
    except OSError as error:
        raise CliError(
            f"--values: {file} cannot be read ({error.strerror}).",
            "Name a readable YAML or JSON file.",
            ExitCode.USAGE,
        ) from error
    except UnicodeDecodeError as error:
        raise CliError(f"--values: {file} is not UTF-8 text.", "Save the file as UTF-8.", ExitCode.USAGE) from error
    return mapping_of(text, f"--values: {file}", is_json=file.suffix == ".json")


def mapping_of(text: str, where: str, *, is_json: bool = False) -> dict[str, Any]:
    """The mapping that a text in YAML, or JSON, holds; an empty text holds an empty one.

    Args:
        where: what the sentence of an error begins with.

    Raises:
        CliError: it is something else than a mapping that JSON can express.
    """
    import yaml  # noqa: PLC0415 - slow, and few commands read YAML

    try:
        values = json.loads(text) if is_json else yaml.safe_load(text)
        json.dumps(values, allow_nan=False)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f", line {mark.line + 1}, column {mark.column + 1}," if mark else ""
        hint = (
            "Indent with spaces; YAML takes no tab." if _is_tab(mark) else "Look at the indentation and the quotes."
        )
        raise CliError(f"{where}{place} is not YAML.", hint, ExitCode.USAGE) from error
    except json.JSONDecodeError as error:
        raise CliError(
            f"{where}, line {error.lineno}, column {error.colno}, is not JSON.",
            "Look at the commas, the quotes and the brackets there.",
            ExitCode.USAGE,
        ) from error
    except (ValueError, TypeError, yaml.YAMLError) as error:
        raise CliError(
            f"{where} holds something that JSON cannot express.",
            "Quote dates; use no NaN, no binary values and no references to themselves.",
            ExitCode.USAGE,
        ) from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise CliError(
            f"{where} does not hold a mapping.", "It looks like `sealed-secrets: {enabled: false}`.", ExitCode.USAGE
        )
    return values


def _is_tab(mark: Any) -> bool:
    """Whether a tab stands where the YAML parser stopped."""
    return mark is not None and mark.buffer is not None and mark.buffer[mark.pointer : mark.pointer + 1] == "\t"


def example(command: str) -> str:
    """What stands under the help of a command."""
    return f"Example: edgewright {command}"
