"""A supervisor with stand-ins for the real parts, and one with the real ones."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from embedded import EmbeddedEdgewright
from supervised import SupervisedHome


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[SupervisedHome]:
    stage = SupervisedHome(tmp_path)
    yield stage
    stage.signals.count = 2
    stage.supervisor.stop()


@pytest.fixture
def edgewright(tmp_path: Path) -> Iterator[EmbeddedEdgewright]:
    edgewright = EmbeddedEdgewright(tmp_path / "home", {"EDGEWRIGHT_DEMO": "0"})
    yield edgewright
    edgewright.clear_up()
