"""The fleet under siege: a centre at work, copies of one attached edge, and what the hostile callers hold."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import UUID

import httpx
import psutil
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from sealing_keys import certificate_pem, private_key

from bench import measures
from bench.agent_load import Task
from bench.copied_fleet import copy_cluster
from bench.edge_identities import secret_of
from bench.edges_at_once import clusters_of, first_edge_and_token
from bench.fleets import START_SECONDS, all_run, rest
from bench.running_centre import RunningCentre, running_centre
from bench.siege.target import Target
from edgewright.domain.cluster import Role

GIT = "git"
SELDOM = 4
"""One cluster in so many gets secrets: a p99 needs more than a hundred answers."""
PERMISSIONS = {"read": ["read"], "clusters": ["clusters"], "secrets": ["secrets"], "push": ["read", "push"]}
"""Permissions of the tokens that hostile callers have; nobody pushes who cannot fetch."""
SAMPLE_SECONDS = 0.5
GIT_SAMPLE_SECONDS = 0.05
"""What git takes, it takes for a moment only."""


@dataclass(frozen=True)
class Field:
    """A centre with a fleet that lives.

    Args:
        task: of the bystanders; the hostile callers' cluster is not among theirs.
        sealing_key: of the bystanders' edges, which opens what is sealed for them.
        fingerprints: of the sealing certificate in use, by cluster, before anybody was hostile.
    """

    centre: RunningCentre
    task: Task
    target: Target
    sealing_key: RSAPrivateKey
    fingerprints: Mapping[str, str | None]


@contextmanager
def field(edges: int, *, interval: float, rounds: float) -> Iterator[Field]:
    """A fleet of ``edges`` bystanders and one hostile cluster, at rest."""
    with running_centre() as centre:
        key = private_key(4096)
        task, spent = asyncio.run(first_edge_and_token(centre, certificate_pem(key)))
        hostile = UUID(task.clusters[0])
        centre.stop()
        url = centre.url
        copy_cluster(centre.home, hostile, edges, external_url=url)
        centre.start(patience=START_SECONDS)
        assert centre.url == url, "another process has taken the gateway's port: all would be rendered anew"
        asyncio.run(all_run(centre, edges + 1))
        rest(centre)
        tokens = asyncio.run(_tokens(centre))
        bystanders = [uuid for uuid in clusters_of(centre.home) if uuid != str(hostile)]
        lively = replace(
            task,
            url=centre.url,
            clusters=bystanders,
            interval=interval,
            rounds=rounds,
            token=centre.token,
            seldom=SELDOM,
        )
        yield Field(
            centre=centre,
            task=lively,
            target=Target(
                url=centre.url,
                temporal=centre.temporal,
                cluster=hostile,
                neighbour=UUID(bystanders[0]),
                agent_password=secret_of(hostile, Role.AGENT),
                spent_token=spent,
                tokens=tokens,
                ports=listening(centre),
                certificates=(measures.certificate(), measures.certificate()),
            ),
            sealing_key=key,
            fingerprints=fingerprints_in(centre.home, bystanders),
        )


async def _tokens(centre: RunningCentre) -> dict[str, str]:
    async with httpx.AsyncClient(base_url=centre.url, headers=centre.headers, trust_env=False) as http:
        answers = {
            kind: await http.post("/v1/token", json={"name": f"siege-{kind}", "permissions": permissions})
            for kind, permissions in PERMISSIONS.items()
        }
    return {kind: answer.raise_for_status().json()["token"] for kind, answer in answers.items()}


def fingerprints_in(home: Path, clusters: Sequence[str]) -> dict[str, str | None]:
    """Fingerprint of the sealing certificate in use, by UUID; None: there is none."""
    with closing(sqlite3.connect(f"file:{home / 'edgewright.db'}?mode=ro", uri=True)) as database:
        rows = database.execute("SELECT uuid, certificate_fingerprint FROM clusters")
        found = {str(UUID(uuid)): fingerprint for uuid, fingerprint in rows}
    return {uuid: found.get(uuid) for uuid in clusters}


def listening(centre: RunningCentre) -> list[int]:
    """The TCP ports on which any program of the centre listens."""
    found: set[int] = set()
    for process in centre.processes():
        for connection in process.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN:
                found.add(connection.laddr.port)
    return sorted(found)


class MemoryWatch:
    """The most that each part of a centre, and any one git of its gateway, has held in megabytes meanwhile."""

    def __init__(self, centre: RunningCentre) -> None:
        self._centre = centre
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self.most: dict[str, float] = {GIT: 0.0}

    def __enter__(self) -> "MemoryWatch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _sample(self) -> None:
        due = 0.0
        while not self._ended.wait(GIT_SAMPLE_SECONDS):
            found = {GIT: self._centre.megabytes_of_git()}
            if time.monotonic() >= due:
                found |= self._centre.megabytes()
                due = time.monotonic() + SAMPLE_SECONDS
            for part, megabytes in found.items():
                self.most[part] = max(self.most.get(part, 0.0), megabytes)
