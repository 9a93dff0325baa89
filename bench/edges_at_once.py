"""What a fleet of edges that live costs one gateway: heartbeats that wait, statuses, and Git polls.

Each size is played twice: with Git polls as seldom as Flux asks by itself, and once a minute for comparison.
"""

import asyncio
import json
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx

from bench import measures
from bench.agent_load import Task, described
from bench.copied_fleet import copy_cluster
from bench.edge_identities import secret_of, status_of
from bench.fleets import START_SECONDS, all_run, rest
from bench.running_centre import RunningCentre, running_centre
from edgewright.domain.cluster import Role

ORIGINAL = "first-of-many"
"""What the copied cluster is called; a word that stands nowhere else, for it is replaced in whatever tells of it."""
INTERVAL = 60.0
LEASE = 180
"""Seconds; the centre asks for heartbeats at a third of it."""
ROUNDS = 3.0
FETCHES = (180.0, 60.0)
"""Seconds between two Git polls of one edge: as Flux asks by itself (600 where the agent tells it of news)."""
SECONDS = 360.0
"""Counted, of each."""
OF_ONE_ADDRESS = {"EDGEWRIGHT_CONNECTIONS_PER_ADDRESS": "10000"}
"""All edges that are played are on one machine; those of a fleet are not."""
RETURNS_PER_SECOND = 20.0
"""Edges whose return after a start of the centre is told, by their workflows; that is counted apart."""
CHANGES = 0.01
"""The part of the heartbeats that a status goes with which differs."""
DAY = 86_400.0


@dataclass(frozen=True)
class Load:
    """What came of one size.

    Args:
        fetch: seconds between two Git polls of one edge.
        heartbeats: that could be held back, ``polls``: as ``agent_load`` tells, once all has settled; ``first``: of
            the time until then, with the heartbeats that are answered at once.
        cores: that each process used; ``load``: those that play the edges.
        megabytes: of each process of ours at the end.
        grown: bytes in a day, if it goes on so.
    """

    edges: int
    fetch: float
    heartbeats: Mapping[str, Any]
    statuses: Mapping[str, Any]
    polls: Mapping[str, Any]
    first: Mapping[str, Mapping[str, Any]]
    late: float
    cores: Mapping[str, float]
    megabytes: Mapping[str, float]
    grown: Mapping[str, float]


def loads(sizes: Sequence[int]) -> Iterator[Load]:
    """Measures each size, the smallest first, on one home that grows."""
    with running_centre(settings=OF_ONE_ADDRESS) as centre:
        task, there = asyncio.run(first_edge(centre, measures.certificate())), 1
        original = UUID(task.clusters[0])
        for size in sizes:
            centre.stop()
            copy_cluster(centre.home, original, size - there, external_url=centre.url)
            there, url = size, centre.url
            centre.start(patience=START_SECONDS)
            assert centre.url == url, "another process has taken the gateway's port: all would be rendered anew"
            asyncio.run(all_run(centre, size))
            rest(centre)
            for turn, fetch in enumerate(FETCHES):
                back = INTERVAL + size / RETURNS_PER_SECOND if turn == 0 else 0.0
                yield played(centre, task, fetch=fetch, settles=max(back, fetch))


async def first_edge(centre: RunningCentre, certificate: str) -> Task:
    """See ``first_edge_and_token``."""
    return (await first_edge_and_token(centre, certificate))[0]


async def first_edge_and_token(centre: RunningCentre, certificate: str) -> tuple[Task, str]:
    """A cluster with an edge that is heard, of which others are copies; what is to be done later; its token, spent.

    Args:
        certificate: for sealing, PEM.
    """
    async with httpx.AsyncClient(base_url=centre.url, timeout=60, trust_env=False) as http:
        http.headers.update(centre.headers)
        wish = {"name": ORIGINAL, "lease_seconds": LEASE}
        uuid: str = (await http.post("/v1/cluster", json=wish)).raise_for_status().json()["uuid"]
        await measures.ready(http, uuid)
        token = (await measures.bootstrap_url(http, uuid)).partition("token=")[2]
        edge = await measures.register(http, uuid, token)
        http.headers.pop("Authorization")
        refs = f"/uuid/{uuid}/info/refs?service=git-upload-pack"
        told = (await http.get(refs, headers=edge.as_flux)).raise_for_status().text
        revision = f"main@sha1:{told.partition(' refs/heads/main')[0][-40:]}"
        status, agent = status_of(certificate, revision), (uuid, secret_of(UUID(uuid), Role.AGENT))
        (await http.put("/v1/agent/status", json=status, auth=agent)).raise_for_status()
        (await http.post("/v1/agent/heartbeat", json={}, auth=agent)).raise_for_status()
        http.headers.update(centre.headers)
        await _settled(http, uuid)
    task = Task(
        url=centre.url,
        clusters=[uuid],
        interval=INTERVAL,
        rounds=ROUNDS,
        changes=CHANGES,
        certificate=certificate,
        revision=revision,
    )
    return task, token


async def _settled(http: httpx.AsyncClient, uuid: str) -> None:
    """Returns when the centre says that the edge is there and has what it should have."""
    while True:
        shown = (await http.get(f"/v1/cluster/{uuid}")).raise_for_status().json()
        told = {condition["type"]: condition["status"] for condition in shown["conditions"]}
        if told["Available"] == told["Synced"] == "True":
            break
        await asyncio.sleep(0.1)
    await asyncio.sleep(3)  # until the last projection is written, too


def played(centre: RunningCentre, task: Task, *, fetch: float, settles: float) -> Load:
    """Plays the edges of every cluster of a centre.

    Args:
        settles: seconds at the beginning that are counted apart.
    """
    task = replace(task, url=centre.url, clusters=clusters_of(centre.home), settles=settles)
    beats = replace(task, rounds=(settles + SECONDS) / task.interval)
    polls = replace(task, interval=fetch, rounds=(settles + SECONDS) / fetch)
    crowds = {"waits": _Crowd("waits", beats), "polls": _Crowd("polls", polls)}
    for crowd in crowds.values():
        crowd.wait_ready()
    for crowd in crowds.values():
        crowd.begin()
    time.sleep(settles)
    begun, used, stored = time.monotonic(), centre.processor_seconds(), _stored(centre.home)
    told = {kind: crowd.outcome() for kind, crowd in crowds.items()}
    seconds = time.monotonic() - begun
    cores = {name: (after - used[name]) / seconds for name, after in centre.processor_seconds().items()}
    waits, fetched = told["waits"]["rounds"], told["polls"]["rounds"]
    return Load(
        edges=len(task.clusters),
        fetch=fetch,
        heartbeats=waits["later"]["held heartbeat"],
        statuses=waits["later"].get("status", {}),
        polls=fetched["later"]["poll"],
        first=waits["first"] | fetched["first"],
        late=max(crowd["late"] for crowd in told.values()),
        cores=cores | {"load": sum(crowd["cores"] for crowd in told.values())},
        megabytes=centre.megabytes(),
        grown={name: (after - stored[name]) / seconds * DAY for name, after in _stored(centre.home).items()},
    )


class _Crowd:
    """A process that plays edges."""

    def __init__(self, kind: str, task: Task) -> None:
        command = [sys.executable, "-m", "bench.agent_load", kind]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._say(described(task))

    def wait_ready(self) -> None:
        assert self._hear() == "ready"

    def begin(self) -> None:
        self._say("begin")

    def outcome(self) -> Any:
        """What it tells at its end."""
        told = json.loads(self._hear())
        self._process.wait()
        return told

    def _say(self, line: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def _hear(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline().strip()


def clusters_of(home: Path) -> list[str]:
    with _reading(home / "edgewright.db") as database:
        return [str(UUID(uuid)) for (uuid,) in database.execute("SELECT uuid FROM clusters")]


def _stored(home: Path) -> dict[str, int]:
    """Bytes that each database uses."""
    used = {}
    for name, file in (("database", "edgewright.db"), ("temporal", "temporal.db")):
        with _reading(home / file) as database:
            pages, free, size = (
                database.execute(f"PRAGMA {what}").fetchone()[0]
                for what in ("page_count", "freelist_count", "page_size")
            )
            used[name] = (pages - free) * size
    return used


def _reading(file: Path) -> "closing[sqlite3.Connection]":
    return closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True))
