"""The stage that the rows of the table share: each is refused, so that none changes it for another."""

import os
from collections.abc import Iterator

import pytest
import structlog
from mistake_stage import MistakeStage, mistake_stage
from temporal_server import temporal_server


@pytest.fixture(scope="session")
def shared_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MistakeStage]:
    with mistake_stage(tmp_path_factory.mktemp("mistakes")) as stage:
        yield stage


@pytest.fixture(scope="session")
def temporal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """``host:port`` of a Temporal server."""
    with temporal_server(tmp_path_factory.mktemp("temporal") / "server.log") as address:
        yield address


@pytest.fixture
def stage(shared_stage: MistakeStage, monkeypatch: pytest.MonkeyPatch) -> Iterator[MistakeStage]:
    """The stage, without the developer's own settings, and with the gateway's log kept off stdout."""
    for name in [name for name in os.environ if name.startswith("EDGEWRIGHT_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(shared_stage.folder)
    shared_stage.forget_wrong_credentials()
    before, mask = structlog.get_config(), os.umask(0o077)
    os.umask(mask)
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    yield shared_stage
    structlog.configure(**before)
    os.umask(mask)
