"""Edges that wait: what a gateway needs for so many held heartbeats, and how soon one of them is told.

They are copies of one edge, each with a connection and a credential of its own. What is told is what a secret's PUT
makes: the new commit. All are told at once, too: of new charts.
"""

import asyncio
import base64
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import httpx

from api.connections.limits import raise_descriptor_limit
from bench import measures
from bench.copied_fleet import copy_cluster
from bench.edge_identities import secret_of
from bench.edges_at_once import clusters_of, first_edge
from bench.fleets import START_SECONDS, all_run, cores_of, rest
from bench.running_centre import RunningCentre, running_centre
from edgewright.adapters.git.bare import BareGitServer
from edgewright.domain.cluster import Role
from edgewright.domain.wellknown import REPOSITORY_HELM_CHARTS
from edgewright.ports.git_server import CommitMessage

WAIT = 50.0
TOLD = 50
"""Secrets that are put, each on another cluster."""
OPENED_AT_ONCE = 50
QUIET_SECONDS = 60.0
PATIENCE = 600.0


@dataclass(frozen=True)
class Held:
    """What came of one size.

    Args:
        before, during: megabytes of each process, before anybody waited and while all do.
        cores: of each process while all wait, with all the heartbeats that come because 50 s are over.
        told: seconds from the answer to a PUT until its edge is told.
        all_told: seconds from the commit of new charts until all are told.
    """

    edges: int
    before: dict[str, float]
    during: dict[str, float]
    cores: dict[str, float]
    told: list[float]
    all_told: float


def held(sizes: Sequence[int]) -> Iterator[Held]:
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
            yield asyncio.run(_waiting(centre))


@dataclass
class _Edge:
    """One that waits, on one connection, until the measurement ends."""

    cluster: str
    url: str
    known: dict[str, Any] = field(default_factory=dict)
    knows: asyncio.Event = field(default_factory=asyncio.Event)
    waits: bool = False
    told_at: float = 0.0

    async def live(self, turn: asyncio.Semaphore) -> None:
        address = urlsplit(self.url)
        async with turn:
            reader, writer = await asyncio.open_connection(address.hostname, address.port)
            await self._beat(reader, writer)
        while True:
            self.waits = True
            await self._beat(reader, writer)

    async def _beat(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        word = base64.b64encode(f"{self.cluster}:{secret_of(UUID(self.cluster), Role.AGENT)}".encode()).decode()
        body = json.dumps({"wait": WAIT, **self.known}).encode()
        writer.write(
            f"POST /v1/agent/heartbeat HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {word}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body
        )
        head = await reader.readuntil(b"\r\n\r\n")
        [length] = [int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        answer = await reader.readexactly(length)
        if head.startswith(b"HTTP/1.1 503 ") and b"close" not in head.lower():  # it comes again, as the agent does
            await asyncio.sleep(1)
            return
        assert head.startswith(b"HTTP/1.1 200 "), head + answer
        told = json.loads(answer)
        known = {"wants_digest": told["wants_digest"], "revisions": told["revisions"]}
        if known != self.known:
            self.known, self.told_at = known, time.monotonic()
            self.knows.set()


async def _waiting(centre: RunningCentre) -> Held:
    before = centre.megabytes()
    edges = [_Edge(cluster, centre.url) for cluster in clusters_of(centre.home)]
    turn = asyncio.Semaphore(OPENED_AT_ONCE)
    async with asyncio.TaskGroup() as tasks:
        living = [tasks.create_task(edge.live(turn)) for edge in edges]
        async with asyncio.timeout(PATIENCE):
            while not all(edge.waits for edge in edges):  # noqa: ASYNC110 - counted, whoever comes
                await asyncio.sleep(0.1)
        await asyncio.sleep(WAIT)  # until their ends are spread as they were opened
        cores = await asyncio.to_thread(cores_of, centre, QUIET_SECONDS)
        during = centre.megabytes()
        told = await _told(centre, edges)
        all_told = await _all_told(centre, edges)
        for task in living:
            task.cancel()
    return Held(len(edges), before, during, cores, told, all_told)


async def _told(centre: RunningCentre, edges: list[_Edge]) -> list[float]:
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


async def _all_told(centre: RunningCentre, edges: list[_Edge]) -> float:
    for edge in edges:
        edge.knows.clear()
    git = BareGitServer(centre.home / "repositories")
    head = git.head(REPOSITORY_HELM_CHARTS)
    message = CommitMessage("New charts", "bench")
    begun = time.monotonic()
    git.commit(REPOSITORY_HELM_CHARTS, {"bench": str(begun).encode()}, message, expected_head=head)
    await asyncio.wait_for(asyncio.gather(*(edge.knows.wait() for edge in edges)), PATIENCE)
    return max(edge.told_at for edge in edges) - begun
