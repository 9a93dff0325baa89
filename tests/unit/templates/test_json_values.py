"""Which JSON values are the same, and how large one is."""

import pytest

from api.json_text import JsonLimits, parse_json
from edgewright.domain.json import Json, canonical_json, is_within, same_json
from edgewright.errors import Invalid

VALUES: list[Json] = [
    None, True, False, 0, 1, 1.0, 0.0, -0.0, 10**30, 1e30, "", "1", "ä", [], [1], [True], [[1.0]], {}, {"a": 1},
    {"a": True}, {"a": 1.0}, {"a": [1, {"b": None}]}, {"a": [1.0, {"b": None}]}, {"b": 2, "a": 1}, {"a": 1, "b": 2},
]  # fmt: skip


@pytest.mark.parametrize("one", VALUES)
def test_values_are_the_same_if_their_canonical_spelling_is(one: Json) -> None:
    for other in VALUES:
        assert same_json(one, other) is (canonical_json(one) == canonical_json(other)), other


@pytest.mark.parametrize(
    ("value", "levels", "nodes"),
    [
        ("text", 0, 0),
        ([], 1, 1),
        ([[]], 2, 2),
        ({"a": 1, "b": [1, 2, 3]}, 2, 5),
        ([["x"], {"a": {"b": "xyz"}}], 3, 5),
    ],
)
def test_levels_and_nodes_are_counted_as_in_a_body(value: Json, levels: int, nodes: int) -> None:
    assert is_within(value, levels=levels, nodes=nodes)
    parse_json(canonical_json(value), JsonLimits(1000, levels=levels, nodes=nodes))
    if nodes:
        assert not is_within(value, levels=levels - 1, nodes=nodes)
        assert not is_within(value, levels=levels, nodes=nodes - 1)
        with pytest.raises(Invalid):
            parse_json(canonical_json(value), JsonLimits(1000, levels=levels, nodes=nodes - 1))
