"""Describes a changed configuration or entry in the timeline: which fields changed, and their old and new values.

It never shows Helm values, fields that only an installation's own schema defines, or the content of other entries:
they may hold passwords, and the timeline is kept for ever, where everybody with `read` can see it.
"""

import json
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from edgewright.domain.json import Json, JsonObject
from edgewright.domain.templates import child

_TOLD = frozenset({"name", "namespace", "chart", "bare", "labels", "accept", "lease_seconds", "check_in"})
"""The fields of a configuration whose values are shown."""
_NONE: Set[str] = frozenset()
_NAMED = 8
"""Up to this many fields are named in one sentence; the rest are counted."""
_LONGEST = 60
"""Most characters of a value, and of a pointer."""
_UNSET = object()


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One changed field.

    Args:
        pointer: JSON pointer in the entry, such as ``/labels/site``.
        said: old and new value; empty if the values must not be shown.
    """

    pointer: str
    said: str = ""

    def __str__(self) -> str:
        return f"{_short(self.pointer)} {self.said}".rstrip()


def changed_fields(before: JsonObject, after: JsonObject) -> Sequence[FieldChange]:
    """Returns the changed fields, sorted by name; objects are compared member by member."""
    return list(_between(before, after, "", _TOLD))


def changed_parts(before: Json, after: Json) -> Sequence[FieldChange]:
    """Returns the changed fields of an entry without their values; none if either entry is not an object."""
    return list(_between(before, after, "", _NONE))


def sentence_of(what: str, changes: Sequence[FieldChange]) -> str:
    """Says in one sentence, without secrets, how ``what`` was changed."""
    if not changes:
        return f"{what} was written without changes."
    more = f" and {len(changes) - _NAMED} more" if len(changes) > _NAMED else ""
    return f"{what} was changed: {', '.join(map(str, changes[:_NAMED]))}{more}."


def names_of(changes: Sequence[FieldChange]) -> str:
    """Returns the pointers for machines, shortened like the sentence."""
    return ",".join(_short(change.pointer) for change in changes[:_NAMED])


def _between(before: Json, after: Json, pointer: str, told: Set[str]) -> Iterator[FieldChange]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            was, is_ = before.get(key, _UNSET), after.get(key, _UNSET)
            if isinstance(was, dict) and isinstance(is_, dict):  # each member is looked at once, however deep it is
                yield from _between(was, is_, child(pointer, key), told)
            elif not _same_scalar(was, is_) and (said := _text(was)) != (says := _text(is_)):
                yield _differing(said, says, child(pointer, key), told)


def _same_scalar(was: object, is_: object) -> bool:
    """Whether both are the same scalar. A shortcut that avoids serialising: most fields are unchanged."""
    return type(was) is type(is_) and not isinstance(was, list) and was == is_


def _differing(said: str, says: str, pointer: str, told: Set[str]) -> FieldChange:
    is_told = pointer.split("/")[1] in told
    return FieldChange(pointer, f"({_short(said)} → {_short(says)})" if is_told else "")


def _text(value: object) -> str:
    """As JSON, so that true and 1 differ, and unprintable characters are escaped."""
    return "unset" if value is _UNSET else json.dumps(value, sort_keys=True)


def _short(text: str) -> str:
    shown = "".join(letter if letter.isprintable() else "?" for letter in text[: _LONGEST + 1])
    return shown if len(text) <= _LONGEST else f"{shown[:_LONGEST]}…"
