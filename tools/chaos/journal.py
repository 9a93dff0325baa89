"""What the clients asked for and what they were answered: one JSON line per attempt.

The checker knows the wishes from here alone. A secret's value is in it, because the checker has to compare; tokens
and credentials are not.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Outcome = Literal["yes", "no", "maybe"]
"""Answered 2xx; refused (4xx); no answer or 5xx: it may have happened or not."""


@dataclass(frozen=True)
class JournalLine:
    """One attempt of a request.

    Args:
        wish: the same for all attempts of one request.
        verb: what is asked for; ``wished`` and ``secret_history`` know the words.
        cluster: UUID; empty while the client does not know it.
        asked: what the verb needs.
        began, ended: seconds since the run began.
        said: facts of the answer that the checker compares.
    """

    wish: str
    verb: str
    cluster: str
    asked: Mapping[str, Any]
    began: float
    ended: float
    outcome: Outcome
    status: int = 0
    code: str = ""
    said: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Kill:
    """``parts``: their names; ``how``: ``kill``, ``put back``, ``copy`` (of what is away for it), ``up ended``."""

    at: float
    how: str
    parts: tuple[str, ...]


class Journal:
    """Appends to a file; keeps what it wrote."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: list[JournalLine] = []
        self.kills: list[Kill] = []
        self._began = time.monotonic()
        self._file: TextIO = path.open("a", encoding="utf-8")

    def now(self) -> float:
        """Seconds since the run began."""
        return round(time.monotonic() - self._began, 4)

    def write(self, line: JournalLine) -> None:
        self.lines.append(line)
        self._append({"line": asdict(line)})

    def killed(self, how: str, parts: Sequence[str]) -> None:
        kill = Kill(self.now(), how, tuple(parts))
        self.kills.append(kill)
        self._append({"kill": asdict(kill)})

    def put_back(self, deed: "DataclassInstance") -> None:
        """A repository: see ``put_backs``."""
        self._append({"put_back": asdict(deed)})

    def close(self) -> None:
        self._file.close()

    def _append(self, record: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(record, separators=(",", ":")) + "\n")
        self._file.flush()


def read_lines(path: Path) -> list[JournalLine]:
    """The attempts of a journal, in the order in which they ended."""
    records = [json.loads(text) for text in path.read_text("utf-8").splitlines()]
    return [JournalLine(**record["line"]) for record in records if "line" in record]
