"""JSON Merge Patch, RFC 7396."""

from collections.abc import Mapping

from edgewright.domain.json import Json, same_json
from edgewright.errors import Invalid

MAX_DEPTH = 64
"""Most levels of nested objects in a patch: far beyond any entry, and far below Python's own limit."""


def apply_merge_patch(target: Json, patch: Json) -> Json:
    """Applies ``patch`` to ``target`` and returns the result; changes neither.

    A patch that is not an object replaces the target. In an object, null removes the member, an object is
    merged into the member, anything else replaces it. Arrays are replaced as a whole.

    Raises:
        Invalid: code ``patch_too_deep``, more than ``MAX_DEPTH`` objects inside each other.
    """
    return _apply(target, patch, depth=0)


def merge_patch_between(before: Json, after: Json) -> Json:
    """Returns the smallest patch that turns ``before`` into ``after``; ``{}`` if they are the same.

    Raises:
        Invalid: code ``patch_impossible``: ``after`` has a null that ``before`` does not have at the same place. In
            a patch, null removes a member, so no patch can set one to null. ``where`` is its JSON pointer.
    """
    return _between(before, after, where="")


def _between(before: Json, after: Json, *, where: str) -> Json:
    if not isinstance(after, Mapping) or not isinstance(before, Mapping):
        _refuse_null(after, where=where)
        return after
    patch: dict[str, Json] = dict.fromkeys(before.keys() - after.keys())
    for key, wanted in after.items():
        place = f"{where}/{key.replace('~', '~0').replace('/', '~1')}"
        if key not in before:
            _refuse_null(wanted, where=place)
            patch[key] = wanted
        elif not same_json(before[key], wanted):
            patch[key] = _between(before[key], wanted, where=place)
    return patch


def _refuse_null(value: Json, *, where: str) -> None:
    """Refuses null members. Nulls in arrays are allowed: a patch replaces arrays as a whole."""
    if value is None:
        raise Invalid(
            f"{where} cannot be set to null: leave it out, which removes it.", code="patch_impossible", where=where
        )
    if isinstance(value, Mapping):
        for key, held in value.items():
            _refuse_null(held, where=f"{where}/{key.replace('~', '~0').replace('/', '~1')}")


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
