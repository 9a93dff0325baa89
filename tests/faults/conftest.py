"""One whole centre for the tests of a process; whatever they break, everything that was answered holds in the end."""

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from failing.caller import Caller, Records
from failing.storage import FaultyStorage


@pytest.fixture(scope="session")
def records(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Records]:
    records = Records(tmp_path_factory.mktemp("records"))
    yield records
    records.journal.close()


@pytest.fixture(scope="session")
def faulty(tmp_path_factory: pytest.TempPathFactory, records: Records) -> Iterator[FaultyStorage]:
    """Runs; its stores are checked when all tests are done."""
    assert shutil.which("unshare") and shutil.which("nsenter"), "this needs unshare and nsenter, of util-linux"
    folder: Path = tmp_path_factory.mktemp("faulty")
    centre = FaultyStorage(folder / "home", {"EDGEWRIGHT_DEMO": "0", "EDGEWRIGHT_SWEEP_SECONDS": "2"})
    try:
        centre.mount()
        centre.up()
        yield centre
        assert centre.wrong(*records.files) == []
        assert centre.interrupt() == 0
    finally:
        centre.clear_up()


@pytest.fixture
async def caller(faulty: FaultyStorage, records: Records) -> AsyncIterator[Caller]:
    caller = Caller(faulty, records)
    yield caller
    await caller.close()
