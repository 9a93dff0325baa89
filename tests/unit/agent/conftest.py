"""A centre that answers what a test wants."""

from collections.abc import Iterator

import pytest
from scripted_centre import ScriptedCentre, scripted_centre


@pytest.fixture
def centre() -> Iterator[ScriptedCentre]:
    with scripted_centre() as centre:
        yield centre
