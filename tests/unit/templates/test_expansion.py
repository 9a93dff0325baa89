"""The language of JSON templates."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewright.domain.templates import (
    MAX_DEPTH,
    MAX_OUTPUT_BYTES,
    TemplateError,
    check_bounds,
    expand,
    merge_values,
)
from edgewright.errors import Stalled

CONTEXT: dict[str, Any] = {
    "name": "press-shop",
    "count": 3,
    "ratio": 0.5,
    "on": True,
    "nothing": None,
    "hosts": ["a", "b"],
    "url": {"self": "https://centre/uuid/1", "deep": {"er": "still here"}},
}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["{{ name }}", "{{x", "}}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


def expanded(template: Any, **more: Any) -> Any:
    return expand(template, {**CONTEXT, **more}, where="Flux template a.yaml")


def refusal_of(template: Any) -> TemplateError:
    with pytest.raises(TemplateError) as refusal:
        expanded(template)
    return refusal.value


@pytest.mark.parametrize("template", ["{{ name }}", "{{name}}", "{{   name}}", "{{\tname\n}}"])
def test_spaces_inside_a_mark_do_not_matter(template: str) -> None:
    assert expanded(template) == "press-shop"


@pytest.mark.parametrize("variable", sorted(CONTEXT))
def test_a_string_that_is_one_mark_becomes_the_value_itself(variable: str) -> None:
    result = expanded(f"{{{{ {variable} }}}}")
    assert result == CONTEXT[variable]
    assert type(result) is type(CONTEXT[variable])


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("ACME-{{ name }}", "ACME-press-shop"),
        ("{{ name }}{{ name }}", "press-shoppress-shop"),
        (" {{ count }}", " 3"),
        ("{{ ratio }} of {{ on }}", "0.5 of true"),
        ("{{ url.self }}/x", "https://centre/uuid/1/x"),
        ('{"a": {"b": 1}} {{ count }}', '{"a": {"b": 1}} 3'),
        ("no marks, } { }}", "no marks, } { }}"),
    ],
)
def test_a_mark_inside_a_longer_string_becomes_text(template: str, text: str) -> None:
    assert expanded(template) == text


def test_dots_lead_into_objects() -> None:
    assert expanded({"a": ["{{ url.deep.er }}"]}) == {"a": ["still here"]}


def test_keys_are_names_and_never_templates() -> None:
    assert expanded({"{{ name }}": 1}) == {"{{ name }}": 1}


@pytest.mark.parametrize("value", [None, True, 7, 1.5, [], {}, [1, {"a": None}], "plain"])
def test_what_has_no_marks_stays_as_it_is(value: Any) -> None:
    assert expanded(value) == value


def test_an_unknown_variable_is_refused_with_its_place_its_name_and_the_names_there_are() -> None:
    refusal = refusal_of([{"spec": {"a/b": "{{ nmae }}"}}])
    assert refusal.where == "Flux template a.yaml#/0/spec/a~1b"
    assert "'nmae'" in refusal.detail
    assert "count, hosts, name, nothing, on, ratio, url" in refusal.detail
    assert refusal.detail.startswith(refusal.where)
    assert refusal.code == "template_invalid"
    assert isinstance(refusal, Stalled)


def test_an_unknown_member_is_refused_with_the_members_there_are() -> None:
    assert "known in 'url': deep, self" in refusal_of("{{ url.slef }}").detail


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ name.first }}", "'name' is a string"),
        ("{{ nothing.x }}", "'nothing' is null"),
        ("{{ hosts.0 }}", "'hosts' is a list"),
        ("x{{ url }}", "'url' is an object"),
        ("x{{ hosts }}", "'hosts' is a list"),
        ("x{{ nothing }}", "'nothing' is null"),
        ("{{ }}", "not a variable name"),
        ("{{ a b }}", "not a variable name"),
        ("{{ .Values.x }}", "not a variable name"),
        ("{{{ name }}}", "not a variable name"),
        ("{{#if name}}", "not a variable name"),
        ("{{ name.. }}", "not a variable name"),
        ("{{ __class__ }}", "unknown variable"),
        ("{{ name", "without"),
        ("{{ name }} {{", "without"),
    ],
)
def test_what_is_no_usable_mark_is_refused_with_the_reason(template: str, reason: str) -> None:
    assert reason in refusal_of(template).detail


@given(json_values)
def test_an_inserted_value_is_never_expanded_again(value: Any) -> None:
    assert expanded({"a": ["{{ v }}"]}, v=value) == {"a": [value]}


@given(st.text(max_size=20))
def test_inserted_text_is_never_expanded_again(text: str) -> None:
    assert expanded("<{{ v }}>", v=text) == f"<{text}>"
    assert expanded("<{{ v }}>", v="{{ name }}") == "<{{ name }}>"


@given(json_values)
def test_expansion_is_the_same_each_time_or_the_same_refusal(template: Any) -> None:
    def outcome() -> Any:
        try:
            return expanded(template)
        except TemplateError as refusal:
            return refusal.detail

    assert outcome() == outcome()


def test_braces_that_only_meet_after_an_insertion_are_no_mark() -> None:
    assert expanded("{{ v }}{ name }}", v="{") == "{{ name }}"


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


def test_depth_is_bounded_with_inserted_values_counted() -> None:
    assert expanded(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    assert "inside each other" in refusal_of(nested(MAX_DEPTH + 1)).detail
    assert expanded([["{{ v }}"]], v=nested(MAX_DEPTH - 2))
    with pytest.raises(TemplateError, match="inside each other"):
        expanded([["{{ v }}"]], v=nested(MAX_DEPTH - 1))


def test_a_value_a_thousand_levels_deep_is_refused_instead_of_exhausting_the_stack() -> None:
    with pytest.raises(TemplateError, match="inside each other"):
        check_bounds(nested(100_000), where="values")


def test_size_is_bounded_however_the_bytes_come_in() -> None:
    half = "x" * (MAX_OUTPUT_BYTES // 2)
    assert expanded("{{ v }}", v=half) == half
    for template in (["{{ v }}", "{{ v }}"], "{{ v }}{{ v }}", [half, "{{ v }}"], {"a": "{{ w }}", "b": "{{ w }}"}):
        with pytest.raises(TemplateError, match="bytes"):
            expanded(template, v=half, w={"k": half})


def test_members_replace_and_objects_merge_in_helm_values() -> None:
    base: Any = {"a": {"x": 1, "y": [1, 2]}, "b": {"z": 1}, "c": 1}
    override: Any = {"a": {"y": [3]}, "b": 2, "d": {"new": True}}
    assert merge_values(base, override) == {"a": {"x": 1, "y": [3]}, "b": 2, "c": 1, "d": {"new": True}}
    assert base == {"a": {"x": 1, "y": [1, 2]}, "b": {"z": 1}, "c": 1}


def test_a_null_in_helm_values_takes_the_value_away_and_reaches_helm() -> None:
    assert merge_values({"a": {"x": 1, "y": 2}}, {"a": {"x": None}}) == {"a": {"x": None, "y": 2}}
