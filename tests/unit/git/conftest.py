"""A real repository for each test."""

from pathlib import Path
from uuid import UUID, uuid4

import pytest

from edgewright.adapters.git.bare import BareGitServer


@pytest.fixture
def server(tmp_path: Path) -> BareGitServer:
    return BareGitServer(tmp_path / "git", clock=lambda: 1_700_000_000.9, patience=0.2)


@pytest.fixture
def repository(server: BareGitServer) -> UUID:
    name = uuid4()
    server.create_repository(name)
    return name
