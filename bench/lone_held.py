"""What held heartbeats take of a gateway's memory without and with TLS that the gateway ends: one after the other.

The gateway is alone on a home of copied edges: nothing is wanted of them meanwhile, so all wait.
"""

import asyncio
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from operator import lt
from pathlib import Path

import psutil
import uvloop
from lone_gateway import LoneGateway, lone_gateway

from api.connections.large_blocks import keep_large_blocks_apart
from bench.edges_at_once import clusters_of
from bench.waiting_edges import PATIENCE, waiting
from tools.production.certificates import make_certificates

WARM = 50
"""Edges that have come and gone before the first weighing: what the first requests load is nobody's."""
SETTLES_SECONDS = 2.0


@dataclass(frozen=True)
class Weighed:
    """What one gateway takes.

    Args:
        first: kilobytes for each edge that waits; ``later``: once each has been answered and waits again.
        megabytes: of all of the gateway then.
    """

    first: float
    later: float
    megabytes: float


def held_alone(home: Path) -> dict[str, Weighed]:
    """Weighs the heartbeats of all edges of a stopped home, over ``http`` and ``https``."""
    keep_large_blocks_apart()  # this process plays the edges, over TLS
    make_certificates(home)
    certificate = {"EDGEWRIGHT_TLS_CERT": str(home / "proxy.crt"), "EDGEWRIGHT_TLS_KEY": str(home / "proxy.key")}
    found: dict[str, Weighed] = {}
    with lone_gateway(home) as gateway:
        found["http"] = uvloop.run(_weigh(gateway, clusters_of(home)))
    verify = ssl.create_default_context(cafile=home / "ca.pem")
    with lone_gateway(home, instead=certificate, verify=verify) as gateway:
        found["https"] = uvloop.run(_weigh(gateway, clusters_of(home)))
    return found


async def _weigh(gateway: LoneGateway, clusters: Sequence[str]) -> Weighed:
    async with waiting(gateway.url, clusters[:WARM], gateway.verify):
        pass
    await asyncio.sleep(SETTLES_SECONDS)
    before = _megabytes(gateway)
    async with waiting(gateway.url, clusters, gateway.verify) as edges:
        await asyncio.sleep(SETTLES_SECONDS)
        first = _megabytes(gateway)
        seen = [edge.answered for edge in edges]
        async with asyncio.timeout(PATIENCE):
            while not all(map(lt, seen, (edge.answered for edge in edges))):  # noqa: ASYNC110 - nobody tells us
                await asyncio.sleep(1)
        await asyncio.sleep(SETTLES_SECONDS)
        later = _megabytes(gateway)
    size = len(clusters)
    return Weighed((first - before) * 1000 / size, (later - before) * 1000 / size, later)


def _megabytes(gateway: LoneGateway) -> float:
    pss: float = psutil.Process(gateway.process.pid).memory_full_info().pss
    return pss / 1e6
