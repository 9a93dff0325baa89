"""What a command shows: results on stdout, all other talk on stderr, so that a pipe carries results only."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from edgewright.domain.cluster import Phase, StepState

Document = Mapping[str, Any]
"""A JSON object as the gateway sent it. A newer gateway may send more than this command line knows."""

_STYLES = {
    "yes": "green",
    "True": "green",
    Phase.ACTIVE: "green",
    StepState.DONE: "green",
    "current": "green",
    "stale": "yellow",
    "opened": "green",
    "refused": "bold red",
    StepState.WAITING: "yellow",
    Phase.REMOVED: "yellow",
    Phase.DETACHING: "yellow",
    Phase.PENDING_ACCEPTANCE: "yellow",
    StepState.BLOCKED: "bold red",
}
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


def show_json(document: object, *, indent: int | None = 2) -> None:
    """A document of the API as the result; ``indent`` None: on one line."""
    result(_ESCAPABLE.sub(_escaped, json.dumps(document, indent=indent, ensure_ascii=False)))


def _escaped(match: re.Match[str]) -> str:
    """A character as JSON spells it in ASCII; nothing else for one that can be seen."""
    character = match[0]
    return character if character.isprintable() else json.dumps(character)[1:-1]


def show_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows under titles: drawn for a terminal, else in plain columns that are never cut."""
    cleaned = [[clean(cell) or _EMPTY for cell in row] for row in rows]
    if sys.stdout.isatty():
        _draw(titles, cleaned)
        return
    lines = [[title.upper() for title in titles], *cleaned]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        result("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _draw(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in titles[:-1]:
        table.add_column(title, overflow="fold")
    table.add_column(titles[-1], overflow="fold", ratio=1)
    for row in rows:
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    Console(highlight=False).print(table)


def show_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Names and values, one to a line; what is empty is left out."""
    known = [(name, clean(value)) for name, value in facts if value]
    width = max((len(name) for name, _ in known), default=0)
    screen = Console(highlight=False, soft_wrap=True)
    for name, value in known:
        line = Text(f"{name:<{width}}  ", style="bold")
        line.append(Text(value, style=_STYLES.get(value, "not bold")))
        screen.print(line)


def show_heading(text: str) -> None:
    """A heading between the parts of a longer result."""
    Console(highlight=False, soft_wrap=True).print(Text(f"\n{clean(text)}", style="bold"))


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
