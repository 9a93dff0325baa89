"""The table of mistakes: what somebody types or sends, and the whole answer, as text files hold them.

A row is a paragraph: the mistake in words, what is typed (``$``) or sent (``>``), how it ends, what is shown::

    # A mistyped command
    $ edgewright clutser list
    2 usage
    edgewright: No such command 'clutser'.
      Did you mean cluster?

How it ends is an exit code or an HTTP status, and the stable code of the error; ``-`` where there is none.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).parents[1] / "mistakes" / "table"
WRITE = "WRITE_MISTAKES"
"""Environment variable; where it is set, the table is written from what is answered."""
_GIVEN = ("$ ", "> ")
_MANY = re.compile(r"\{(\d+) x (.)\}")


@dataclass(frozen=True)
class MistakeAnswer:
    """What comes of a mistake.

    Args:
        status: exit code, or HTTP status.
        code: of the error; ``-`` if there is none.
        shown: what a person reads, line by line; hints are indented.
    """

    status: int
    code: str
    shown: tuple[str, ...]

    def text(self) -> str:
        return "\n".join((f"{self.status} {self.code}", *self.shown))


@dataclass(frozen=True)
class Mistake:
    """One row. ``about``: the mistake; rows of one mistake have one. ``given``: lines without their mark."""

    door: str
    about: str
    given: tuple[str, ...]
    answer: MistakeAnswer | None

    @property
    def id(self) -> str:
        """As pytest shows it."""
        return f"{self.door}: {' '.join(self.given)}"[:110]


def rows_of(door: str) -> list[Mistake]:
    """The rows of a file."""
    return [_row(door, paragraph) for paragraph in (TABLE / f"{door}.txt").read_text("utf-8").strip().split("\n\n")]


def hold(mistake: Mistake, answer: MistakeAnswer) -> None:
    """Compares an answer with the table, or writes it there where that is wanted."""
    if os.environ.get(WRITE):
        _write(mistake, answer)
    else:
        assert mistake.answer is not None, f"the table has no answer: {WRITE}=1 writes it"
        assert answer.text() == mistake.answer.text(), f"{mistake.id}: {WRITE}=1 writes what is meant to change"


def filled(text: str, places: dict[str, str]) -> str:
    """A text with what its placeholders stand for: ``{url}``; ``{300 x a}`` is a long word."""
    for name, value in places.items():
        text = text.replace(f"{{{name}}}", value)
    return _MANY.sub(lambda many: many[2] * int(many[1]), text)


def _row(door: str, paragraph: str) -> Mistake:
    lines = paragraph.splitlines()
    assert lines[0].startswith("# "), f"{door}: {lines[0]}"
    given = tuple(line[2:] for line in _leading(lines[1:]))
    status, _, code = lines[1 + len(given)].partition(" ")
    shown = tuple(lines[2 + len(given) :])
    answer = None if status == "?" else MistakeAnswer(int(status), code, shown)
    return Mistake(door, lines[0][2:], given, answer)


def _leading(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if not line.startswith(_GIVEN):
            return
        yield line


def _write(mistake: Mistake, answer: MistakeAnswer) -> None:
    file = TABLE / f"{mistake.door}.txt"
    paragraphs = file.read_text("utf-8").strip().split("\n\n")
    [place] = [
        number
        for number, paragraph in enumerate(paragraphs)
        if (row := _row(mistake.door, paragraph)).given == mistake.given and row.about == mistake.about
    ]
    kept = paragraphs[place].splitlines()[: 1 + len(mistake.given)]
    paragraphs[place] = "\n".join([*kept, answer.text()])
    file.write_text("\n\n".join(paragraphs) + "\n", "utf-8")
