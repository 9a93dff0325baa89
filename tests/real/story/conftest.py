"""A desk beside an Edgewright that runs; the tests of the story share one home, each on clusters of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from desk import Desk
from embedded import EmbeddedEdgewright


@pytest.fixture(scope="module")
def centre(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedEdgewright]:
    """Starts with a fresh home, and sweeps often, so that what a sweep would bring back is soon back."""
    centre = EmbeddedEdgewright(tmp_path_factory.mktemp("story") / "home", {"EDGEWRIGHT_SWEEP_SECONDS": "2"})
    yield centre
    centre.clear_up()


@pytest.fixture
def desk(centre: EmbeddedEdgewright, kubeseal: Path, tmp_path: Path) -> Desk:
    if centre.ended():
        centre.up()
    return Desk(centre, tmp_path, kubeseal)
