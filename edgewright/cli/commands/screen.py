"""What a command shows: results on stdout, all other talk on stderr, so that a pipe carries results only."""

import json
import re
import sys
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import chain
from operator import itemgetter
from typing import Any

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from edgewright.cli.failures import CliError, ExitCode
from edgewright.domain.cluster import Phase, StepState

Document = Mapping[str, Any]
"""A JSON object as the gateway sent it. A newer gateway may send more than this command line knows."""

_ALARMING = {
    StepState.BLOCKED: "bold red",
    "refused": "bold red",
    "no key opens it": "bold red",
    StepState.WAITING: "yellow",
    "stale": "yellow",
    Phase.PENDING_ACCEPTANCE: "yellow",
    Phase.DETACHING: "yellow",
    Phase.REMOVED: "yellow",
}
"""Words that somebody should notice. What is as it should be has no colour: it would hide them."""
_GAP = "  "
_NARROWEST = 12
"""Columns of the terminal that a cell keeps, however little room there is."""
_EMPTY = "-"
_ESCAPABLE = re.compile(r"[\x7f-\U0010ffff]")
"""What JSON need not escape and a terminal may obey: C1 controls, and marks that turn the direction of text."""


def clean(value: object) -> str:
    """A value on one line, free of anything that could steer a terminal: others wrote it.

    >>> clean("a" + chr(27) + "[31mb" + chr(10) + "c")
    'a?[31mb c'
    """
    text = " ".join(str(value).split())
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def result(text: str) -> None:
    """A line of the result."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def say(text: str) -> None:
    """A line beside the result."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


class MachineForm(StrEnum):
    """How a command shows what it has done to those who do not want to read sentences."""

    JSON = "json"
    YAML = "yaml"
    NAME = "name"


_FORM: ContextVar[MachineForm] = ContextVar("_FORM", default=MachineForm.JSON)


@contextmanager
def shown_as(form: MachineForm) -> Iterator[None]:
    """Has ``show_json`` show documents in another form within the block."""
    before = _FORM.set(form)
    try:
        yield
    finally:
        _FORM.reset(before)


def demand_more_than_a_name(what: str) -> None:
    """Refuses `--output name` for a command whose document holds something that is shown only once.

    Raises:
        CliError: the command was asked for the name only.
    """
    if _FORM.get() is MachineForm.NAME:
        raise CliError(
            f"`--output name` would not show {what}, and nothing shows it later.",
            "Use json or yaml. Nothing was done.",
            ExitCode.USAGE,
        )


def show_json(document: object, *, indent: int | None = 2, names: Sequence[str] = ()) -> None:
    """A document of the API as the result: JSON, or the form that `--output` asks for.

    Args:
        indent: None: on one line, as others come before or after it.
        names: what the document is about, where it does not say so itself.
    """
    match _FORM.get():
        case MachineForm.JSON:
            result(_ESCAPABLE.sub(_escaped, json.dumps(document, indent=indent, ensure_ascii=False)))
        case MachineForm.YAML:
            plain = json.loads(json.dumps(document))  # YAML has no words for enums
            show_yaml(plain, one_of_many=indent is None)
        case MachineForm.NAME:
            for name in dict.fromkeys(names or _names_in(document)):
                result(clean(name))


def _names_in(document: object) -> list[str]:
    """The names of what a document describes; of each item, if it has items. What has no name has an ID."""
    if isinstance(document, Mapping):
        items = document.get("items", [document])
    else:
        items = document if isinstance(document, list) else []
    found = [next((each[key] for key in ("name", "uuid", "id") if each.get(key)), None) for each in items]
    return [str(name) for name in found if name is not None]


def show_yaml(document: object, *, one_of_many: bool = False) -> None:
    """The same document as YAML. ``one_of_many``: others come before or after it."""
    import yaml  # noqa: PLC0415 - slow, and few commands show YAML

    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)
    if any(not (letter.isprintable() or letter == "\n") for letter in text):
        text = yaml.safe_dump(document, sort_keys=False, allow_unicode=False, width=120)
    result(("---\n" if one_of_many else "") + text.rstrip("\n"))


def _escaped(match: re.Match[str]) -> str:
    """A character as JSON spells it in ASCII; nothing else for one that can be seen."""
    character = match[0]
    return character if character.isprintable() else json.dumps(character)[1:-1]


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        cell: what it says of an item; empty: nothing.
        long: on a terminal its cells may be cut, so that a line fits.
        style: how a cell of this item is printed on a terminal; None: by its word.
    """

    title: str
    cell: Callable[[Document], str]
    long: bool = False
    style: Callable[[Document], str] | None = None


def table_lines(
    columns: Sequence[Column], items: Sequence[Document], *, room: int | None = None, fold: bool = False
) -> list[Text]:
    """A table, line by line, with its titles.

    Args:
        room: columns of the terminal that a line may take; None: nothing is cut or folded.
        fold: the last column goes on in further lines instead of being cut.
    """
    rows = [[clean(column.cell(item)) or _EMPTY for column in columns] for item in items]
    titles = [column.title.upper() for column in columns]
    widths = [max(map(cell_len, cells)) for cells in zip(titles, *rows, strict=True)]
    if room is not None:
        flexible = [place for place, column in enumerate(columns) if column.long or column is columns[-1]]
        widths = _fitted(widths, flexible, room - len(_GAP) * (len(columns) - 1))
    folded = fold and room is not None
    lines = [_line([Text(title, style="bold") for title in titles], widths)]
    for item, row in zip(items, rows, strict=True):
        cells = [Text(cell, style=_style(column, item, cell)) for column, cell in zip(columns, row, strict=True)]
        last = _folded(cells[-1], widths[-1]) if folded else [cells[-1]]
        lines.append(_line([*cells[:-1], last[0]], widths, whole=folded))
        lines += [_line([*(Text("") for _ in cells[:-1]), further], widths, whole=folded) for further in last[1:]]
    return lines


def _style(column: Column, item: Document, cell: str) -> str:
    return alarm(cell) if column.style is None else column.style(item)


def alarm(word: str) -> str:
    """The style of a word that somebody should notice; empty for any other."""
    return _ALARMING.get(word, "")


def _fitted(widths: Sequence[int], flexible: Sequence[int], room: int) -> list[int]:
    """The widths, the widest flexible ones reduced until all fit, or nothing is left to take."""
    fitted = list(widths)
    while sum(fitted) > room:
        widest = max(flexible, key=fitted.__getitem__)
        if fitted[widest] <= _NARROWEST:
            break
        fitted[widest] -= 1
    return fitted


def _folded(cell: Text, width: int) -> list[Text]:
    """A cell in lines of that width. A word that is longer, such as a URL, stays whole."""
    parts = textwrap.wrap(cell.plain, width, break_long_words=False, break_on_hyphens=False)
    return [Text(part, style=cell.style) for part in parts]


def _line(cells: Sequence[Text], widths: Sequence[int], *, whole: bool = False) -> Text:
    """Cells side by side, each as wide as its column. ``whole``: but for the last, which is as long as it is."""
    for cell, width in zip(cells[:-1] if whole else cells, widths, strict=False):
        cell.truncate(width, overflow="ellipsis", pad=True)
    line = Text(_GAP).join(cells)
    line.rstrip()
    return line


def show_lines(lines: Sequence[Text]) -> None:
    """Lines of the result: with colour on a terminal that has some, else as plain text."""
    if sys.stdout.isatty():
        console = terminal_console()
        for line in lines:
            console.print(line, soft_wrap=True)
    else:
        for line in lines:
            result(line.plain)


def room_on_terminal() -> int | None:
    """The columns of the terminal that takes the result; None: no terminal does."""
    return terminal_console().width if sys.stdout.isatty() else None


def is_drawable() -> bool:
    """Whether the result goes to a terminal on which lines can be drawn over."""
    return sys.stdout.isatty() and not terminal_console().is_dumb_terminal


def terminal_console() -> Console:
    """The terminal that takes the result, if one does."""
    # Whether this is a terminal is not left to variables such as FORCE_COLOR: a pipe carries text only.
    return Console(highlight=False, force_terminal=sys.stdout.isatty())


def show_table(titles: Sequence[str], rows: Sequence[Sequence[str]], *, long: Collection[str] = ()) -> None:
    """Rows under titles: on a terminal the last column goes on in further lines.

    Args:
        long: titles of columns whose cells may be cut on a terminal; of the others nothing is.
    """
    columns = [Column(title, itemgetter(title), long=title in long) for title in titles]
    items = [dict(zip(titles, row, strict=True)) for row in rows]
    show_lines(table_lines(columns, items, room=room_on_terminal(), fold=True))


def show_facts(facts: Sequence[tuple[str, str]], *, fold: bool = True) -> None:
    """Names and values, one to a line; what is empty is left out. ``fold``: on a terminal, long values are."""
    show_lines(fact_lines(facts, room=room_on_terminal() if fold else None))


def fact_lines(facts: Sequence[tuple[str, str]], *, room: int | None = None) -> list[Text]:
    """Names and values, line by line; values that need more than the room go on below."""
    known = [(name, clean(value)) for name, value in facts if value]
    widest = max((len(name) for name, _ in known), default=0)
    lines = []
    for name, value in known:
        cell = Text(value, style=alarm(value))
        parts = [cell] if room is None else _folded(cell, max(_NARROWEST, room - widest - len(_GAP)))
        names = chain([Text(name, style="bold")], _blanks())
        lines += [_line([title, part], [widest], whole=True) for title, part in zip(names, parts, strict=False)]
    return lines


def _blanks() -> Iterator[Text]:
    while True:
        yield Text("")


def heading_lines(text: str) -> list[Text]:
    """A heading between the parts of a longer result, line by line."""
    return [Text(""), Text(clean(text), style="bold")]


def yes_no(value: object) -> str:
    """A truth value as a word."""
    return "yes" if value else "no"


def moment(text: str | None) -> str:
    """A moment of the API, to the second; empty for none.

    >>> moment("2031-02-03T04:05:06.789+00:00")
    '2031-02-03T04:05:06Z'
    """
    if not text:
        return ""
    return datetime.fromisoformat(text).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def pairs(labels: Mapping[str, object] | None) -> str:
    """Labels on one line."""
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items()))
