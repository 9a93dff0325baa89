"""A cluster that takes secrets, and an operator who may set them."""

from uuid import UUID

import httpx
import pytest
from gateway_centre import STATUS_APP, GatewayCentre
from sealed_values import STATUS

from edgewright.ports.operators import Permission


@pytest.fixture
async def cluster(centre: GatewayCentre, admin: httpx.AsyncClient) -> UUID:
    """A cluster whose edge has reported its sealing certificate."""
    made = await centre.create("sealed")
    assert (await admin.put(f"/v1/app/{STATUS_APP}/object/{made}", json=STATUS)).status_code == 201
    return made


@pytest.fixture
async def operator(centre: GatewayCentre) -> httpx.AsyncClient:
    return await centre.operator(Permission.SECRETS)
