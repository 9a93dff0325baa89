"""Which JSON values are the same."""

import pytest

from edgewright.domain.json import Json, canonical_json, same_json

VALUES: list[Json] = [
    None, True, False, 0, 1, 1.0, 0.0, -0.0, 10**30, 1e30, "", "1", "ä", [], [1], [True], [[1.0]], {}, {"a": 1},
    {"a": True}, {"a": 1.0}, {"a": [1, {"b": None}]}, {"a": [1.0, {"b": None}]}, {"b": 2, "a": 1}, {"a": 1, "b": 2},
]  # fmt: skip


@pytest.mark.parametrize("one", VALUES)
def test_values_are_the_same_if_their_canonical_spelling_is(one: Json) -> None:
    for other in VALUES:
        assert same_json(one, other) is (canonical_json(one) == canonical_json(other)), other
