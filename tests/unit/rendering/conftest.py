"""A cluster to render, made of the default entries."""

from collections.abc import Callable

import pytest
import rendering_stage

from edgewright.domain.rendering import RenderInput


@pytest.fixture
def render_input() -> Callable[..., RenderInput]:
    """Makes the input of a cluster called press-shop; keyword arguments replace its fields."""
    return rendering_stage.render_input
