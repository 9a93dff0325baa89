"""What values of a cluster may hold: exactly what the renderer can deliver."""

from typing import Any

import pytest

from edgewright.domain.rendering import check_values, render_repository
from edgewright.domain.rendering.deliverable import DEEPEST_VALUES, LARGEST_VALUES
from edgewright.domain.templates import TemplateError
from edgewright.errors import Invalid


def nested(levels: int) -> dict[str, Any]:
    """That many objects inside each other."""
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


@pytest.mark.parametrize("values", [{"a": "\x85"}, {"a": {"<<": {}}}, {"\x7f": 1}, {"a": [float("inf")]}])
def test_what_the_renderer_refuses_is_refused_at_the_door(render_input: Any, values: dict[str, Any]) -> None:
    with pytest.raises(TemplateError):
        render_repository(render_input(values=values))
    with pytest.raises(Invalid) as refusal:
        check_values(values)
    assert refusal.value.code == "values_undeliverable"


LARGE = {"a": "x" * (LARGEST_VALUES - 20)}


@pytest.mark.parametrize("values", [nested(DEEPEST_VALUES), LARGE, {"<": "\x00\n\u2028"}])
def test_what_passes_the_door_is_rendered_with_the_default_templates(
    render_input: Any, values: dict[str, Any]
) -> None:
    check_values(values)
    render_repository(render_input(values=values))
