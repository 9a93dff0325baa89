"""One topology for the tests of a file; each makes clusters of its own."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tools.production.topology import AS_COMPOSE, Topology, running


@pytest.fixture(scope="module")
def topology() -> Iterator[Topology]:
    """PostgreSQL, Temporal, two workers, two gateways, a TLS proxy: as ``docker-compose.yml`` says."""
    folder = Path(tempfile.mkdtemp(prefix="edgewright-production-"))
    try:
        with running(folder, print, policy=AS_COMPOSE) as made:
            yield made
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def client(topology: Topology) -> Iterator[httpx.Client]:
    """An administrator beyond the proxy."""
    with topology.client() as made:
        yield made
