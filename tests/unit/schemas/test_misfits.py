"""What is said of values that do not fit: where, and what they have to be; never what they hold."""

from typing import Any

import pytest

from edgewright.adapters.charts.misfits import LONGEST_PATH, LONGEST_REASON, misfit_of
from edgewright.adapters.json_schema import violation_of


def sentence(schema: Any, values: Any) -> str:
    violation = violation_of(schema, values)
    assert violation is not None
    return misfit_of("broker", violation).sentence


@pytest.mark.parametrize(
    ("schema", "value", "reason"),
    [
        ({"type": "boolean"}, "s3cr3t", "has to be true or false"),
        ({"type": ["integer", "null"]}, "s3cr3t", "has to be a whole number or null"),
        ({"enum": ["tcp", "udp"]}, "s3cr3t", 'has to be one of "tcp", "udp"'),
        ({"const": 1}, "s3cr3t", "has to be 1"),
        ({"pattern": "^[a-z]$"}, "s3cr3t", "does not have the form that its schema asks for"),
        ({"minLength": 1}, "", "must not be empty"),
        ({"minLength": 9}, "s3cr3t", "needs 9 characters at least"),
        ({"maxLength": 3}, "s3cr3t", "may have 3 characters at most"),
        ({"minimum": 5}, 4, "has to be 5 at least"),
        ({"exclusiveMaximum": 5}, 5, "has to be less than 5"),
        ({"multipleOf": 5}, 4, "has to be a multiple of 5"),
        ({"minItems": 2}, ["s3cr3t"], "needs 2 items at least"),
        ({"uniqueItems": True}, ["s3cr3t", "s3cr3t"], "holds the same item twice"),
        ({"propertyNames": {"maxLength": 2}}, {"s3cr3t": 1}, "has a name in it that the chart does not take"),
        ({"not": {"type": "string"}}, "s3cr3t", "does not fit the chart's schema (not)"),
        (False, "s3cr3t", "may not be set"),
    ],
)
def test_each_reason_is_a_sentence_without_the_value(schema: Any, value: Any, reason: str) -> None:
    said = sentence({"properties": {"a": {"properties": {"b": schema}}}}, {"a": {"b": value}})
    assert said == f"a.b: {reason}."


def test_the_place_of_what_is_missing_and_of_what_is_too_much_is_its_own() -> None:
    assert sentence({"properties": {"a": {"required": ["b"]}}}, {"a": {}}) == "a.b: is missing."
    listed = {"properties": {"a": {"items": {"additionalProperties": False}}}}
    assert sentence(listed, {"a": [{}, {"b": 1}]}) == "a[1].b: there is no such value."


def test_a_name_much_like_another_one_is_taken_for_it() -> None:
    schema = {"properties": {"a": {"properties": {"replicas": {}, "x-1": {}}, "additionalProperties": False}}}
    violation = violation_of(schema, {"a": {"replica": 1}})
    assert violation is not None
    assert misfit_of("broker", violation).meant == "a.replicas"


def test_names_that_a_pattern_allows_are_not_unexpected() -> None:
    schema = {"patternProperties": {"^x-": {}}, "additionalProperties": False}
    assert sentence(schema, {"x-a": 1, "b": 1}) == "b: there is no such value."


def test_pointers_are_escaped_and_everything_is_bounded() -> None:
    violation = violation_of({"additionalProperties": False}, {"a/b~c": 1})
    assert violation is not None
    assert misfit_of("broker", violation).pointer == "/a~1b~0c"
    long = violation_of({"properties": {"k" * 5000: {"enum": ["x" * 5000]}}}, {"k" * 5000: 1})
    assert long is not None
    misfit = misfit_of("broker", long)
    assert len(misfit.pointer) <= LONGEST_PATH + 1
    assert len(misfit.sentence) <= LONGEST_PATH + LONGEST_REASON + 10
