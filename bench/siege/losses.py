"""After a siege: is everything there that was answered, and unchanged what nobody was allowed to change?"""

import asyncio
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from uuid import UUID

import httpx

from bench.siege.field import Field

PATIENCE = 60.0


async def losses(ground: Field, kept: Mapping[str, str]) -> list[str]:
    """Sentences, one for each promise that does not hold.

    Args:
        kept: path of each secret that was answered with success.
    """
    async with httpx.AsyncClient(
        base_url=ground.centre.url, headers=ground.centre.headers, timeout=PATIENCE, trust_env=False
    ) as http:
        found = await _secrets(http, kept)
        found += await _clusters(ground, http)
    return found


async def _secrets(http: httpx.AsyncClient, kept: Mapping[str, str]) -> list[str]:
    """Each secret that was answered is listed, sealed for the certificate in use."""
    lost: list[str] = []
    for cluster in sorted({path.split("/")[3] for path in kept}):
        answer = await http.get(f"/v1/cluster/{cluster}/secret")
        listed = answer.json() if answer.status_code == 200 else {"items": []}
        there = {
            f"/v1/cluster/{cluster}/secret/{item['namespace']}/{item['name']}/{item['key']}": item["state"]
            for item in listed["items"]
        }
        for path in kept:
            if path.split("/")[3] == cluster and there.get(path) != "current":
                lost.append(f"the secret {path} is {there.get(path, 'gone')}")
    return lost


async def _clusters(ground: Field, http: httpx.AsyncClient) -> list[str]:
    """No bystander is deleted, silent or has another sealing certificate; asked until the centre has settled."""
    trouble: list[str] = []
    for _ in range(int(PATIENCE)):
        trouble = [sentence for uuid in ground.task.clusters for sentence in await _trouble(http, UUID(uuid))]
        if not trouble:
            break
        await asyncio.sleep(1)
    with closing(sqlite3.connect(f"file:{ground.centre.home / 'edgewright.db'}?mode=ro", uri=True)) as database:
        fingerprints = {
            row[0]
            for row in database.execute(
                "SELECT DISTINCT certificate_fingerprint FROM clusters WHERE uuid != ?", (ground.target.cluster.hex,)
            )
        }
    if len(fingerprints) != 1:
        trouble.append(f"the bystanders had one sealing certificate, now they have {len(fingerprints)}")
    return trouble


async def _trouble(http: httpx.AsyncClient, cluster: UUID) -> list[str]:
    answer = await http.get(f"/v1/cluster/{cluster}")
    if answer.status_code != 200:
        return [f"{cluster} answers {answer.status_code}"]
    shown = answer.json()
    return [] if shown["phase"] == "Active" else [f"{shown['name']} is {shown['phase']}"]
