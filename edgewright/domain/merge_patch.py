"""JSON Merge Patch, RFC 7396."""

from collections.abc import Mapping

from edgewright.domain.json import Json
from edgewright.errors import Invalid

MAX_DEPTH = 64
"""Objects inside objects that a patch may hold; far beyond any entry, far below Python's own limit."""


def apply_merge_patch(target: Json, patch: Json) -> Json:
    """What ``target`` becomes under ``patch``; neither is changed.

    A patch that is not an object replaces the target. In an object, null removes the member, an object is
    merged into the member, anything else replaces it. Arrays are replaced as a whole.

    Raises:
        Invalid: code ``patch_too_deep``, more than ``MAX_DEPTH`` objects inside each other.
    """
    return _apply(target, patch, depth=0)


def _apply(target: Json, patch: Json, *, depth: int) -> Json:
    if not isinstance(patch, Mapping):
        return patch
    if depth >= MAX_DEPTH:
        raise Invalid(f"The merge patch has more than {MAX_DEPTH} objects inside each other.", code="patch_too_deep")
    merged: dict[str, Json] = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _apply(merged.get(key), value, depth=depth + 1)
    return merged
