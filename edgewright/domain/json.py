"""JSON values as types, and the canonical form of a value."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""Any JSON value. Containers are read-only: code that takes a ``Json`` never changes it."""

JsonObject: TypeAlias = Mapping[str, Json]


def canonical_json(value: Json) -> bytes:
    """Returns the value as UTF-8 JSON with sorted keys and no spaces: equal values give equal bytes.

    Raises:
        ValueError: NaN or an infinity, which JSON does not have.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def same_json(one: Json, other: Json) -> bool:
    """Whether two values have the same canonical form; unlike ``==``, true differs from 1, and 1 from 1.0."""
    return one == other and _spelled_alike(one, other)


def is_within(value: Json, *, levels: int, nodes: int) -> bool:
    """Whether a value has at most ``levels`` of nested objects and arrays, and at most ``nodes`` values in total."""
    inside: list[tuple[Any, int]] = [(value, 1)]
    while inside:
        one, level = inside.pop()
        if isinstance(one, str) or not isinstance(one, Mapping | Sequence):
            continue
        nodes -= max(1, len(one))
        if level > levels or nodes < 0:
            return False
        members = one.values() if isinstance(one, Mapping) else one
        inside += [(member, level + 1) for member in members]
    return True


def _spelled_alike(one: Json, other: Any) -> bool:
    """For values that are equal to each other."""
    if isinstance(one, Mapping):
        return all(_spelled_alike(member, other[key]) for key, member in one.items())
    if isinstance(one, str):
        return True
    if isinstance(one, Sequence):
        return all(map(_spelled_alike, one, other))
    return type(one) is type(other) and repr(one) == repr(other)
