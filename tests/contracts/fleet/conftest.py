"""One suite for the fleet: the one in memory, and the real one on a real Temporal server."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from centre import open_centre, working
from fleet_stage import FleetStage
from gateway_centre import gateway_centre, make_database
from temporal_server import temporal_server


@pytest.fixture(scope="session")
def temporal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with temporal_server(tmp_path_factory.mktemp("temporal") / "server.log") as address:
        yield address


@pytest.fixture(params=["memory", "temporal"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[FleetStage]:
    async with AsyncExitStack() as stack:
        if request.param == "memory":
            await make_database(tmp_path / "edgewright.db")
            memory = await stack.enter_async_context(
                gateway_centre(tmp_path / "edgewright.db", tmp_path / "repositories")
            )
            yield FleetStage(memory.fleet, memory.ports.wishes, memory.ports.directory, memory.ports.staging)
            return
        centre = await stack.enter_async_context(open_centre(tmp_path, request.getfixturevalue("temporal")))
        await stack.enter_async_context(working(centre))
        yield FleetStage(centre.fleet, centre.wishes, centre.directory, centre.ports.staging)
