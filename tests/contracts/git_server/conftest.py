"""The contract suite runs against the real adapter and the fake."""

from pathlib import Path
from uuid import UUID, uuid4

import pytest
from memory_git_server import MemoryGitServer

from edgewright.adapters.git.bare import BareGitServer
from edgewright.ports.git_server import GitServer


class Clock:
    """Counts seconds, one per look."""

    def __init__(self) -> None:
        self.now = 1_700_000_000

    def __call__(self) -> float:
        self.now += 1
        return self.now


@pytest.fixture(params=["bare", "memory"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> GitServer:
    if request.param == "bare":
        return BareGitServer(tmp_path / "git", clock=Clock(), patience=20.0, loose_limit=50)
    return MemoryGitServer(clock=Clock())


@pytest.fixture
def repository(server: GitServer) -> UUID:
    name = uuid4()
    server.create_repository(name)
    return name
