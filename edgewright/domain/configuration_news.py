"""What the timeline tells of a changed configuration or entry: which fields, and from what to what.

Of Helm values, of fields that only an installation's own schema knows, and of any entry that is no configuration, it
tells no content: they may hold passwords, and the timeline is for ever and for everybody who may read.
"""

import json
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

from edgewright.domain.json import Json, JsonObject
from edgewright.domain.templates import child

_TOLD = frozenset({"name", "namespace", "chart", "bare", "labels", "accept", "lease_seconds", "check_in"})
"""The fields of a configuration whose content is told."""
_NONE: Set[str] = frozenset()
_NAMED = 8
"""So many fields are named in one sentence; more are counted."""
_LONGEST = 60
"""Characters of a value, and of a pointer."""
_UNSET = object()


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that differs.

    Args:
        pointer: JSON pointer in the entry, such as ``/labels/site``.
        said: from what to what; empty for what is never told.
    """

    pointer: str
    said: str = ""

    def __str__(self) -> str:
        return f"{_short(self.pointer)} {self.said}".rstrip()


def changed_fields(before: JsonObject, after: JsonObject) -> Sequence[FieldChange]:
    """The fields that differ, in order of their names; objects are compared member by member."""
    return list(_between(before, after, "", _TOLD))


def changed_parts(before: Json, after: Json) -> Sequence[FieldChange]:
    """The fields of an entry that differ, without a word of what they hold; none if either is no object."""
    return list(_between(before, after, "", _NONE))


def sentence_of(what: str, changes: Sequence[FieldChange]) -> str:
    """``what`` was changed, and how: one sentence without a secret."""
    if not changes:
        return f"{what} was written; nothing differs."
    more = f" and {len(changes) - _NAMED} more" if len(changes) > _NAMED else ""
    return f"{what} was changed: {', '.join(map(str, changes[:_NAMED]))}{more}."


def names_of(changes: Sequence[FieldChange]) -> str:
    """The pointers, for machines; cut like the sentence."""
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
    """Whether both are the same text, number or the like; told without spelling them, as most fields are the same."""
    return type(was) is type(is_) and not isinstance(was, list) and was == is_


def _differing(said: str, says: str, pointer: str, told: Set[str]) -> FieldChange:
    is_told = pointer.split("/")[1] in told
    return FieldChange(pointer, f"({_short(said)} → {_short(says)})" if is_told else "")


def _text(value: object) -> str:
    """As JSON, so that true and 1 differ, and what cannot be printed is escaped."""
    return "unset" if value is _UNSET else json.dumps(value, sort_keys=True)


def _short(text: str) -> str:
    shown = "".join(letter if letter.isprintable() else "?" for letter in text[: _LONGEST + 1])
    return shown if len(text) <= _LONGEST else f"{shown[:_LONGEST]}…"
