"""One whole centre for the tests of a process; whatever they break, everything that was answered holds in the end."""

import shutil
from collections.abc import AsyncIterator, Iterator

import pytest
from failing.caller import Caller
from failing.records import Records, running
from failing.storage import FaultyStorage


@pytest.fixture(scope="session")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> FaultyStorage:
    """Runs as long as ``records``."""
    assert shutil.which("unshare") and shutil.which("nsenter"), "this needs unshare and nsenter, of util-linux"
    variables = {"EDGEWRIGHT_DEMO": "0", "EDGEWRIGHT_SWEEP_SECONDS": "2"}
    return FaultyStorage(tmp_path_factory.mktemp("faulty") / "home", variables)


@pytest.fixture(scope="session")
def records(faulty: FaultyStorage) -> Iterator[Records]:
    try:
        faulty.mount()
        with running(faulty) as records:
            yield records
    finally:
        faulty.clear_up()


@pytest.fixture
async def caller(faulty: FaultyStorage, records: Records) -> AsyncIterator[Caller]:
    caller = Caller(faulty, records)
    yield caller
    await caller.close()
