"""Edges that wait: what a gateway needs for so many held heartbeats, and how soon one of them is told.

They are copies of one edge, each with a connection and a credential of its own. What is told is what a secret's PUT
makes: the new commit. All are told at once, too: of new charts.
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

import httpx

from api.connections.limits import raise_descriptor_limit
from bench import measures
from bench.copied_fleet import copy_cluster
from bench.edges_at_once import clusters_of, first_edge
from bench.fleets import START_SECONDS, all_run, cores_of, rest
from bench.lone_held import Weighed, held_alone
from bench.running_centre import RunningCentre, running_centre
from bench.waiting_edges import PATIENCE, WAIT, WaitingEdge, waiting
from edgewright.adapters.git.bare import BareGitServer
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.ports.git_server import CommitMessage

TOLD = 50
"""Secrets that are put, each on another cluster."""
QUIET_SECONDS = 60.0


@dataclass(frozen=True)
class HeldFigures:
    """What came of one size.

    Args:
        before, during: megabytes of each process, before anybody waited and while all do.
        cores: of each process while all wait, with all the heartbeats that come because 50 s are over.
        told: seconds from the answer to a PUT until its edge is told.
        all_told: seconds from the commit of new charts until all are told.
        alone: see ``held_alone``.
    """

    edges: int
    before: dict[str, float]
    during: dict[str, float]
    cores: dict[str, float]
    told: list[float]
    all_told: float
    alone: dict[str, Weighed]


def held(sizes: Sequence[int]) -> Iterator[HeldFigures]:
    """Measures each size, the smallest first, on one home that grows."""
    raise_descriptor_limit()
    with running_centre() as centre:
        task, there = asyncio.run(first_edge(centre, measures.certificate())), 1
        for size in sizes:
            centre.stop()
            copy_cluster(centre.home, UUID(task.clusters[0]), size - there, external_url=centre.url)
            there, url = size, centre.url
            centre.start(patience=START_SECONDS)
            assert centre.url == url, "another process has taken the gateway's port: all would be rendered anew"
            asyncio.run(all_run(centre, size))
            rest(centre)
            told = asyncio.run(_waiting(centre))
            centre.stop()
            yield replace(told, alone=held_alone(centre.home))


async def _waiting(centre: RunningCentre) -> HeldFigures:
    before = centre.megabytes()
    async with waiting(centre.url, clusters_of(centre.home)) as edges:
        await asyncio.sleep(WAIT)  # until their ends are spread as they were opened
        cores = await asyncio.to_thread(cores_of, centre, QUIET_SECONDS)
        during = centre.megabytes()
        told = await _told(centre, edges)
        all_told = await _all_told(centre, edges)
    return HeldFigures(len(edges), before, during, cores, told, all_told, {})


async def _told(centre: RunningCentre, edges: list[WaitingEdge]) -> list[float]:
    times = []
    async with httpx.AsyncClient(base_url=centre.url, headers=centre.headers, timeout=60, trust_env=False) as http:
        for edge in edges[:: max(1, len(edges) // TOLD)]:
            edge.knows.clear()
            put = await http.put(f"/v1/cluster/{edge.cluster}/secret/default/db/password", content=b"s3cret")
            put.raise_for_status()
            answered = time.monotonic()
            await asyncio.wait_for(edge.knows.wait(), PATIENCE)
            times.append(max(0.0, edge.told_at - answered))
    return times


async def _all_told(centre: RunningCentre, edges: list[WaitingEdge]) -> float:
    for edge in edges:
        edge.knows.clear()
    git = BareGitServer(centre.home / "repositories")
    head = git.head(REPOSITORY_HELM_CHARTS)
    message = CommitMessage("New charts", "bench")
    begun = time.monotonic()
    git.commit(REPOSITORY_HELM_CHARTS, {"bench": str(begun).encode()}, message, expected_head=head)
    await asyncio.wait_for(asyncio.gather(*(edge.knows.wait() for edge in edges)), PATIENCE)
    return max(edge.told_at for edge in edges) - begun
