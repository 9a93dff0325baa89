"""JSON Merge Patch against RFC 7396."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewright.domain.merge_patch import MAX_DEPTH, apply_merge_patch
from edgewright.errors import Invalid

# Appendix A of RFC 7396: original, patch, result.
RFC_EXAMPLES: list[tuple[Any, Any, Any]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@pytest.mark.parametrize(("target", "patch", "result"), RFC_EXAMPLES)
def test_each_example_of_the_rfc_gives_its_result(target: Any, patch: Any, result: Any) -> None:
    assert apply_merge_patch(target, patch) == result


def test_the_long_example_of_the_rfc_gives_its_result() -> None:
    target: Any = {
        "title": "Goodbye!",
        "author": {"givenName": "John", "familyName": "Doe"},
        "tags": ["example", "sample"],
        "content": "This will be unchanged",
    }
    patch: Any = {
        "title": "Hello!",
        "phoneNumber": "+01-123-456-7890",
        "author": {"familyName": None},
        "tags": ["example"],
    }
    assert apply_merge_patch(target, patch) == {
        "title": "Hello!",
        "author": {"givenName": "John"},
        "tags": ["example"],
        "content": "This will be unchanged",
        "phoneNumber": "+01-123-456-7890",
    }


@given(json_values, json_values)
def test_neither_target_nor_patch_is_changed_and_a_second_application_changes_nothing(
    target: Any, patch: Any
) -> None:
    before = copy.deepcopy((target, patch))
    once = apply_merge_patch(target, patch)
    assert (target, patch) == before
    assert apply_merge_patch(once, patch) == once


def test_a_patch_that_is_too_deep_is_refused_instead_of_exhausting_the_stack() -> None:
    def nested(levels: int) -> Any:
        return {} if levels == 1 else {"a": nested(levels - 1)}

    assert apply_merge_patch({}, nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    with pytest.raises(Invalid) as refusal:
        apply_merge_patch({}, nested(MAX_DEPTH + 1))
    assert refusal.value.code == "patch_too_deep"
