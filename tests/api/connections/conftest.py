"""Gateways whose connections are bounded: one in this process, with and without TLS, and one that is a process."""

import asyncio
import resource
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from bounded_gateway import PATIENT, BoundedGateway
from gateway_centre import EdgeCredentials, gateway_centre
from live_gateway import live_gateway
from lone_gateway import LoneGateway, lone_gateway

from edgewright.cli.home import prepare_home
from edgewright.cli.initialise import initialise_storage
from edgewright.settings import Settings
from tools.production.certificates import make_certificates

DESCRIPTORS = 1024


def certificate(folder: Path) -> ssl.SSLContext:
    """What a server shows that is its own authority's."""
    make_certificates(folder)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "proxy.crt", folder / "proxy.key")
    return context


@pytest.fixture(scope="module", params=["http", "https"])
def live(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoundedGateway]:
    folder = tmp_path_factory.mktemp(request.param)
    with live_gateway(folder, PATIENT, certificate(folder) if request.param == "https" else None) as gateway:
        yield BoundedGateway(gateway.centre, gateway.loop, gateway.url)


@dataclass(frozen=True)
class Known:
    """A gateway of few descriptors, and an edge that it knows."""

    gateway: LoneGateway
    edge: EdgeCredentials


async def registered_edge(home: Path) -> EdgeCredentials:
    async with gateway_centre(home / "edgewright.db", home / "repositories") as centre:
        return await centre.register(await centre.create("crowded"))


@pytest.fixture(scope="package", params=["http", "https"])
def known(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Known]:
    home = tmp_path_factory.mktemp("crowded")
    prepare_home(home)
    asyncio.run(initialise_storage(Settings(home=home)))
    edge = asyncio.run(registered_edge(home))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    told, verify = {"EDGEWRIGHT_TRUSTED_PROXIES": "127.0.0.9"}, None
    if request.param == "https":
        make_certificates(home)
        told |= {"EDGEWRIGHT_TLS_CERT": str(home / "proxy.crt"), "EDGEWRIGHT_TLS_KEY": str(home / "proxy.key")}
        verify = ssl.create_default_context(cafile=home / "ca.pem")
    with lone_gateway(home, descriptors=f"256:{DESCRIPTORS}", instead=told, verify=verify) as gateway:
        yield Known(gateway, edge)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def lone(known: Known) -> LoneGateway:
    return known.gateway


@pytest.fixture
def edge(known: Known) -> EdgeCredentials:
    return known.edge
