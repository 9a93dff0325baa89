"""A supervisor with stand-ins for the real parts."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from supervised import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.signals.count = 2
    stage.supervisor.stop()
