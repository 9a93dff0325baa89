"""What a JSON Schema may cost: everything that takes time is counted, whatever keyword takes it."""

from typing import Any

import pytest

from edgewright.adapters.json_schema import TooCostly, violation_of

MANY = 20_000
NAMES = [f"name-{number}" for number in range(MANY)]


def again_and_again(schema: Any, times: int = 3000) -> dict[str, Any]:
    """A schema that looks at a value by another one so many times, and is hardly longer for that."""
    return {"$defs": {"a": schema}, "allOf": [{"$ref": "#/$defs/a"}] * times}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"items": True}, [0] * MANY),
        ({"items": {}}, [0] * MANY),
        ({"contains": True}, [0] * MANY),
        ({"propertyNames": True}, dict.fromkeys(NAMES, 0)),
        ({"additionalProperties": True}, dict.fromkeys(NAMES, 0)),
        ({"properties": dict.fromkeys(NAMES, True)}, {}),
        ({"required": NAMES}, dict.fromkeys(NAMES, 0)),
        ({"dependentRequired": {name: [] for name in NAMES}}, {}),
        ({"prefixItems": [True] * MANY}, [0] * MANY),
        ({"allOf": [{}] * MANY}, 0),
        ({"const": [0] * MANY}, [0] * MANY),
        ({"enum": [[0] * MANY]}, [0] * MANY),
        ({"uniqueItems": True}, ["x" * 500_000]),
        ({"unevaluatedProperties": True}, dict.fromkeys(NAMES, 0)),
    ],
)
def test_what_a_keyword_goes_through_is_counted(schema: Any, value: Any) -> None:
    with pytest.raises(TooCostly):
        violation_of(again_and_again(schema), value)


def test_names_that_nothing_has_looked_at_are_not_looked_for_without_end() -> None:
    schema = {"properties": dict.fromkeys(NAMES, True), "unevaluatedProperties": False}
    with pytest.raises(TooCostly):
        violation_of(schema, dict.fromkeys(NAMES, 0))


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "array", "items": {"type": "integer"}, "maxItems": 50_000}, [0] * 49_000),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, NAMES),
        ({"additionalProperties": {"type": "integer"}}, dict.fromkeys(NAMES, 0)),
        ({"properties": {"a": {"enum": [f"{n}" for n in range(1000)]}}}, {"a": "999"}),
        (
            {"items": {"properties": {"host": {"type": "string"}, "cpus": {"minimum": 1}}, "required": ["host"]}},
            [{"host": f"host-{n}", "cpus": 4} for n in range(5000)],
        ),
        ({"properties": dict.fromkeys(NAMES[:500], True), "unevaluatedProperties": False}, {NAMES[0]: 1}),
    ],
)
def test_large_entries_with_ordinary_schemas_are_within_the_bounds(schema: Any, value: Any) -> None:
    assert violation_of(schema, value) is None
