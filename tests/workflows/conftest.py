"""A real Temporal server for all tests of a process; a fresh centre for each."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import centre as centre_module
import pytest
from centre import WorkflowCentre, open_centre, working
from temporal_server import temporal_server
from temporalio.worker import UnsandboxedWorkflowRunner


@pytest.fixture(scope="session")
def temporal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """``host:port`` of the server."""
    with temporal_server(tmp_path_factory.mktemp("temporal") / "server.log") as address:
        yield address


@pytest.fixture
async def idle_centre(temporal: str, tmp_path: Path) -> AsyncIterator[WorkflowCentre]:
    """A centre whose worker does not run."""
    async with open_centre(tmp_path, temporal) as centre:
        yield centre


@pytest.fixture
async def centre(idle_centre: WorkflowCentre) -> AsyncIterator[WorkflowCentre]:
    """A centre at work."""
    async with working(idle_centre):
        yield idle_centre


@pytest.fixture
def patchable(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Lets a test change the modules of the workflow: without the sandbox, which loads its own copies."""
    monkeypatch.setattr(centre_module, "sandboxed", UnsandboxedWorkflowRunner)
    return monkeypatch
