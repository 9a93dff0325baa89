"""Queries for entries: paths into their bodies, and the values required there."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edgewright.errors import Invalid

Scalar = str | int | float | bool | None
Path = tuple[str, ...]

_PATH = re.compile(r"(?:\$\.)?([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)")


@dataclass(frozen=True)
class Absent:
    """The value at a path that does not exist."""


ABSENT = Absent()


@dataclass(frozen=True)
class EntryQuery:
    """``wanted``: required values by path; ``results``: paths to read from matching entries, by name."""

    wanted: Sequence[tuple[Path, Scalar | Absent]] = ()
    results: Mapping[str, Path] | None = None

    def matches(self, body: Any) -> bool:
        """Whether a body has all required values; true is not 1, and null is not absent."""
        return all(_same(value_at(body, path), value) for path, value in self.wanted)


def path_of(text: str) -> Path:
    """Parses a path of names, such as ``flux.version`` or ``$.flux.version``.

    Raises:
        Invalid: code ``path_unsupported``: it uses other features of JSONPath.
    """
    found = _PATH.fullmatch(text)
    if found is None:
        raise Invalid(
            "A search goes by names joined with dots; other JSONPath is not understood.",
            code="path_unsupported",
            hint="For example ?flux.version=%22v2.7.3%22.",
            where="query",
        )
    return tuple(found[1].split("."))


def value_at(body: Any, path: Path) -> Any:
    """Returns the value at a path; ``ABSENT`` if the path does not exist."""
    for name in path:
        if not isinstance(body, dict) or name not in body:
            return ABSENT
        body = body[name]
    return body


def _same(found: Any, wanted: Scalar | Absent) -> bool:
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    return bool(found == wanted)
