"""JSON Merge Patch against RFC 7396."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewright.domain.merge_patch import MAX_DEPTH, apply_merge_patch, merge_patch_between
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


# --- the patch between two values ---------------------------------------------------------------------------------

json_objects = st.dictionaries(st.text(max_size=3), json_values, max_size=4)


@given(before=json_objects, after=json_objects)
def test_the_patch_between_two_values_makes_the_one_of_the_other(before: Any, after: Any) -> None:
    try:
        patch = merge_patch_between(before, after)
    except Invalid as error:
        assert error.code == "patch_impossible"
        assert has_null(after)
        return
    assert apply_merge_patch(before, patch) == after
    assert merge_patch_between(after, after) == {}


def has_null(value: Any) -> bool:
    return value is None or (isinstance(value, dict) and any(map(has_null, value.values())))


@pytest.mark.parametrize(
    ("before", "after", "where"),
    [
        ({}, {"a": None}, "/a"),
        ({"a": 1}, {"a": None}, "/a"),
        ({"a": {"b/c": 1}}, {"a": {"b/c": {"d~": None}}}, "/a/b~1c/d~0"),
    ],
)
def test_no_patch_sets_a_member_to_null(before: Any, after: Any, where: str) -> None:
    with pytest.raises(Invalid) as refused:
        merge_patch_between(before, after)
    assert (refused.value.code, refused.value.where) == ("patch_impossible", where)


def test_a_patch_names_nothing_that_stays() -> None:
    before: Any = {"a": {"b": 1, "c": {"d": 2}}, "kept": [1], "null": None, "gone": True}
    after: Any = {"a": {"b": 1, "c": {"d": 3}}, "kept": [1], "null": None}
    assert merge_patch_between(before, after) == {"a": {"c": {"d": 3}}, "gone": None}
