"""One populated gateway for each module here: what one has broken in, no other meets."""

from collections.abc import Iterator

import httpx
import pytest
from live_gateway import LiveGateway, Population, live_gateway, populate


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveGateway]:
    with live_gateway(tmp_path_factory.mktemp("live")) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def population(live: LiveGateway) -> Population:
    return populate(live)


@pytest.fixture(scope="module")
def client(live: LiveGateway) -> Iterator[httpx.Client]:
    with live.client() as client:
        yield client
