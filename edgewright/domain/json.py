"""JSON values as types, and the one canonical spelling of a value."""

import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""Any JSON value. Read-only containers: what takes a ``Json`` never changes it."""

JsonObject: TypeAlias = Mapping[str, Json]


def canonical_json(value: Json) -> bytes:
    """The value as UTF-8 JSON with sorted keys and no spaces: equal values give equal bytes.

    Raises:
        ValueError: NaN or an infinity, which JSON does not have.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()
