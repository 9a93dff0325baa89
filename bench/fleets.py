"""What large fleets cost: the same few requests, memory, files and processor time at rest, at several sizes.

One home grows from size to size. Its clusters are copies of one that was commissioned (``copied_fleet``), each with
rows, a repository and a running workflow of its own.
"""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import httpx
from temporalio.client import Client

from bench import measures
from bench.copied_fleet import copy_cluster
from bench.running_centre import RunningCentre, running_centre

START_SECONDS = 3600.0
WINDOW = 5.0
AT_REST = 0.15
"""Cores that a centre at rest may use in a window: a sweep now and then, and nothing else."""
REST_SECONDS = 60.0
TRIES = 15
QUESTIONS = ("sort=name", "sort=-created", "sort=-last_heard", "sort=phase&ready=true", "sort=name&name=fleet-7")
RUNNING = "WorkflowType = 'ManagedCluster' AND ExecutionStatus = 'Running'"


@dataclass(frozen=True)
class FleetFigures:
    """One size.

    Args:
        started: seconds from the start of `edgewright up` until every workflow ran and rested.
        created, put, listed: seconds, p50; ``listed`` by query.
        megabytes: of each process alone, at rest, before anything was asked.
        busy: cores that each process uses at rest.
        files: bytes of the database and of Temporal's file.
    """

    clusters: int
    started: float
    created: float
    put: float
    listed: Mapping[str, float]
    megabytes: Mapping[str, float]
    busy: Mapping[str, float]
    files: Mapping[str, int]


def fleets(sizes: Sequence[int]) -> Iterator[FleetFigures]:
    """Measures each size, the smallest first."""
    with running_centre() as centre:
        original, there = asyncio.run(_first(centre)), 1
        for size in sizes:
            centre.stop()
            copy_cluster(centre.home, original, size - there, external_url=centre.url)
            there = size
            begun, url = time.monotonic(), centre.url
            centre.start(patience=START_SECONDS)
            assert centre.url == url, "another process has taken the gateway's port: all would be rendered anew"
            asyncio.run(all_run(centre, size))
            rest(centre)
            started = time.monotonic() - begun
            megabytes, files, busy = centre.megabytes(), files_of(centre.home), cores_of(centre, REST_SECONDS)
            created, put, listed, more = asyncio.run(_ask(centre))
            there += more
            yield FleetFigures(size, started, created, put, listed, megabytes, busy, files)


async def _first(centre: RunningCentre) -> UUID:
    async with _client(centre) as client:
        uuid, _ = await measures.create(client, "fleet")
        await asyncio.sleep(2)  # until the last projection is written, too
    return UUID(uuid)


async def all_run(centre: RunningCentre, clusters: int) -> None:
    """Returns when so many workflows of clusters run."""
    temporal = await Client.connect(centre.temporal)
    while (await temporal.count_workflows(RUNNING)).count < clusters:  # noqa: ASYNC110 - nobody tells us
        await asyncio.sleep(1)


def rest(centre: RunningCentre) -> None:
    """Returns when nothing but sweeps is done any more: two windows without, one after the other."""
    quiet = 0
    while quiet < 2:
        quiet = quiet + 1 if sum(cores_of(centre, WINDOW).values()) < AT_REST else 0


def cores_of(centre: RunningCentre, seconds: float) -> dict[str, float]:
    """What each process uses in the next seconds, on average."""
    before = centre.processor_seconds()
    time.sleep(seconds)
    return {name: (after - before[name]) / seconds for name, after in centre.processor_seconds().items()}


async def _ask(centre: RunningCentre) -> tuple[float, float, dict[str, float], int]:
    """p50 of creating, of writing a secret and of lists; and how many clusters there are more now."""
    async with _client(centre) as client:
        await measures.created_alone(client, 2)
        created = measures.p50(await measures.created_alone(client, TRIES))
        sealed = await measures.with_certificate(client)
        await measures.put_secrets(client, sealed, 3)
        put = measures.p50(await measures.put_secrets(client, sealed, TRIES))
        listed = {question: await _listed(client, question) for question in QUESTIONS}
    return created, put, listed, TRIES + 3


async def _listed(client: httpx.AsyncClient, question: str) -> float:
    taken: list[float] = []
    for _ in range(TRIES):
        answer = (await client.get(f"/v1/cluster?limit=100&{question}")).raise_for_status()
        assert answer.json()["items"] or "name=" in question
        taken.append(answer.elapsed.total_seconds())
    return measures.p50(taken)


def files_of(home: Path) -> dict[str, int]:
    """Bytes of the database and of Temporal's, with what is not yet in their files."""
    return {
        "database": sum(file.stat().st_size for file in home.glob("edgewright.db*")),
        "temporal": sum(file.stat().st_size for file in home.glob("temporal.db*")),
    }


def _client(centre: RunningCentre) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=centre.url, headers=centre.headers, timeout=300, trust_env=False)
