"""A gateway for each test, on a copy of one freshly made database."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import httpx
import pytest
from gateway_centre import EdgeCredentials, GatewayCentre, gateway_centre

from edgewright.ports.operators import Permission


@pytest.fixture
async def centre(tmp_path: Path, fresh_database: Path) -> AsyncIterator[GatewayCentre]:
    file = tmp_path / "edgewright.db"
    shutil.copy(fresh_database, file)
    async with gateway_centre(file, tmp_path / "repositories") as made:
        yield made


@pytest.fixture
async def admin(centre: GatewayCentre) -> httpx.AsyncClient:
    return await centre.operator(Permission.ADMIN)


@pytest.fixture
def anybody(centre: GatewayCentre) -> httpx.AsyncClient:
    """A client without credentials."""
    return centre.client()


@pytest.fixture
async def cluster(centre: GatewayCentre) -> UUID:
    return await centre.create("edge")


@pytest.fixture
async def edge(centre: GatewayCentre, cluster: UUID) -> EdgeCredentials:
    return await centre.register(cluster)
