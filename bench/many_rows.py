"""Lists over many clusters: a lone gateway on a database into which one cluster's row was copied many times."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from lone_gateway import LoneGateway, lone_gateway
from sqlalchemy import insert, select

from bench.measures import p50
from edgewright.adapters.database.engine.engine import open_database
from edgewright.adapters.database.tables import clusters, labels

TRIES = 15
QUESTIONS = (
    "sort=name",
    "sort=-created",
    "sort=-last_heard",
    "sort=phase&ready=true",
    "sort=name&label=line%3Dpress&phase=AwaitingBootstrap",
    "sort=name&name=shop-7",
)
PHASES = ("AwaitingBootstrap", "Active", "Commissioning")


def slowest_list(rows: int) -> tuple[float, str]:
    """Seconds (p50) of the slowest kind of list over that many clusters, a page of 100, and which it was."""
    with (
        tempfile.TemporaryDirectory(prefix="edgewright-bench-lists-") as folder,
        lone_gateway(Path(folder)) as gateway,
    ):
        first = gateway.api("POST", "/v1/cluster", json={"name": "shop"}).json()["uuid"]
        asyncio.run(_copy_row(gateway, first, rows))
        with httpx.Client(base_url=gateway.url, headers=_headers(gateway), timeout=60, trust_env=False) as client:
            return max((_time(client, question), question) for question in QUESTIONS)


def _headers(gateway: LoneGateway) -> dict[str, str]:
    return {"Authorization": f"Bearer {(gateway.home / 'admin-token').read_text().strip()}"}


def _time(client: httpx.Client, question: str) -> float:
    taken: list[float] = []
    for _ in range(TRIES):
        answer = client.get(f"/v1/cluster?limit=100&{question}").raise_for_status()
        assert answer.json()["items"], question
        taken.append(answer.elapsed.total_seconds())
    return p50(taken)


async def _copy_row(gateway: LoneGateway, uuid: str, rows: int) -> None:
    url = f"sqlite+aiosqlite:///{gateway.home / 'edgewright.db'}"
    async with open_database(url) as database, database.write() as connection:
        statement = select(clusters).where(clusters.c.name_key == "shop")
        row = dict((await connection.execute(statement)).one()._mapping)
        copies: list[dict[str, Any]] = []
        for number in range(rows - 1):
            name = f"shop-{number}"
            labelled = {"line": "press" if number % 2 else "paint"}
            differs = {"uuid": uuid4(), "name": name, "name_key": name, "labels": labelled}
            phase = PHASES[number % len(PHASES)]
            copies.append({**row, **differs, "phase": phase, "ready": phase != "Commissioning"})
        await connection.execute(insert(clusters), copies)
        marks = [{"cluster": c["uuid"], "key": "line", "value": c["labels"]["line"]} for c in copies]
        await connection.execute(insert(labels), marks)
