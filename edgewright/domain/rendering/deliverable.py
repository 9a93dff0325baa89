"""What a document may hold if it is to arrive on an edge as it is: the limits of YAML as Kubernetes reads it."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic_core import to_json

from edgewright.domain.json import Json, JsonObject
from edgewright.domain.templates import child
from edgewright.errors import Invalid

DEEPEST_VALUES = 48
"""Levels of a cluster's Helm values. A rendered file may have 64; templates need the rest."""
LARGEST_VALUES = 768 * 1024
"""Bytes of a cluster's Helm values as compact JSON. A rendered file may have 1 MiB; templates need the rest."""

_UNDELIVERABLE = re.compile(r"[\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""What the YAML reader of Kubernetes refuses, escaped or not."""


@dataclass(frozen=True)
class Undeliverable:
    """One place that cannot be delivered. ``reason`` completes a sentence that begins with the JSON pointer."""

    pointer: str
    reason: str


def find_undeliverable(value: Json, *, pointer: str, levels: int | None = None) -> Undeliverable | None:
    """The first place in a document that YAML cannot carry; None if there is none.

    Args:
        pointer: JSON pointer of the document itself.
        levels: how many objects and lists may be inside each other; None: any number.
    """
    if isinstance(value, str):
        found = _UNDELIVERABLE.search(value)
        return Undeliverable(pointer, f"holds U+{ord(found[0]):04X}, which YAML cannot carry") if found else None
    if isinstance(value, float) and not math.isfinite(value):
        return Undeliverable(pointer, "is not a number")
    if isinstance(value, Mapping | list | tuple):
        return _find_inside(value, pointer, levels)
    return None


def check_values(values: JsonObject) -> None:
    """Refuses Helm values that would be accepted here and never reach the edge.

    Raises:
        Invalid: code ``values_undeliverable``; ``where`` is the JSON pointer in the configuration entry.
    """
    found = find_undeliverable(values, pointer="/values", levels=DEEPEST_VALUES)
    if found is None and _is_too_large(values):
        found = Undeliverable("/values", f"has more than {LARGEST_VALUES} characters of JSON")
    if found is not None:
        raise Invalid(
            f"These values cannot be delivered to an edge: {found.pointer} {found.reason}.",
            code="values_undeliverable",
            hint="Change that value; nothing was stored.",
            where=found.pointer,
        )


def _is_too_large(values: JsonObject) -> bool:
    # No value has more characters than bytes, and those are counted in a fraction of the time.
    return (
        len(to_json(values)) > LARGEST_VALUES
        and len(json.dumps(values, ensure_ascii=False, separators=(",", ":"))) > LARGEST_VALUES
    )


def _find_inside(value: Json, pointer: str, levels: int | None) -> Undeliverable | None:
    if levels == 0:
        return Undeliverable(pointer, "is nested too deep")
    left = None if levels is None else levels - 1
    if isinstance(value, Mapping):
        for key, member in value.items():
            here = child(pointer, key)
            if key == "<<":
                return Undeliverable(here, "has the key '<<', which means a merge in YAML")
            if found := _UNDELIVERABLE.search(key):
                return Undeliverable(pointer, f"has a key with U+{ord(found[0]):04X}, which YAML cannot carry")
            if fault := find_undeliverable(member, pointer=here, levels=left):
                return fault
    elif isinstance(value, list | tuple):
        for index, element in enumerate(value):
            if fault := find_undeliverable(element, pointer=child(pointer, index), levels=left):
                return fault
    return None
