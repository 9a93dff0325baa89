"""One run: a fresh home, clients, something that kills, and the silence after it."""

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from embedded import EmbeddedEdgewright
from temporalio.client import Client

from chaos.door import Door, Request
from chaos.edge_keys import make_keys
from chaos.golden import CHART_TEMPLATE, CLASS_CHART, OTHER_CHART
from chaos.journal import Journal
from chaos.killer import Killer
from chaos.players import Player
from chaos.settling import settle
from chaos.temporal_file import TemporalFile

VARIABLES = {"EDGEWRIGHT_DEMO": "0", "EDGEWRIGHT_SWEEP_SECONDS": "2"}
LAST_PATIENCE = 5.0
"""Seconds that requests under way get once everything runs again."""


@dataclass(frozen=True)
class Plan:
    """What a run is to be.

    Args:
        kills: processes to kill; 0: every client plays ``lives`` lives in peace.
        pace: mean seconds between two kills.
        seconds: no kill is begun after so many seconds.
        patience: seconds until everything has to be at rest in the end.
    """

    seed: int
    kills: int
    clients: int = 4
    pace: float = 1.3
    lives: int = 3
    seconds: float = 1_000_000.0
    patience: float = 120.0


@dataclass(frozen=True)
class Ran:
    """What a run leaves: the stores of a centre that was stopped, and the journal.

    Args:
        left: what was still to be done when patience was over; empty if all is well.
    """

    plan: Plan
    folder: Path
    kills: Counter[str]
    put_back: int
    seconds: float
    left: tuple[str, ...]

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def journal(self) -> Path:
        return self.folder / "journal.jsonl"

    @property
    def keys(self) -> Path:
        return self.folder / "edge-keys.json"


async def run(folder: Path, plan: Plan) -> Ran:
    """Runs in a folder of its own; leaves no process behind."""
    centre = EmbeddedEdgewright(folder / "home", VARIABLES)
    began = time.monotonic()
    try:
        await asyncio.to_thread(centre.up)
        ran = await _with(centre, folder, plan, began)
        assert await asyncio.to_thread(centre.interrupt) == 0, centre.said()
        return ran
    finally:
        await asyncio.to_thread(centre.clear_up)


async def _with(centre: EmbeddedEdgewright, folder: Path, plan: Plan, began: float) -> Ran:
    journal = Journal(folder / "journal.jsonl")
    keys = make_keys(folder / "edge-keys.json")
    endpoints = centre.endpoints()
    token = (centre.home / "admin-token").read_text().strip()
    doors = [Door(str(endpoints["gateway"]), token, journal) for _ in range(plan.clients)]
    temporal = await Client.connect(str(endpoints["temporal"]), lazy=True)
    stop = asyncio.Event()
    players = [Player(plan.seed, n, door, keys, temporal, stop) for n, door in enumerate(doors)]
    killer = Killer(centre, TemporalFile(centre.home, folder / "copies"), journal, seed=plan.seed, pace=plan.pace)
    await _make_other_chart(doors[0])
    await _play(players, killer, plan, stop)
    await killer.come_back()
    left = await settle(centre.home, seconds=plan.patience)
    for door in doors:
        await door.close()
    journal.close()
    await asyncio.sleep(0.2)  # a Temporal client that is dropped at once may crash its process at exit
    return Ran(plan, folder, killer.kills, killer.put_back, time.monotonic() - began, tuple(left))


async def _play(players: list[Player], killer: Killer, plan: Plan, stop: asyncio.Event) -> None:
    if not plan.kills:
        await asyncio.gather(*(player.play(plan.lives) for player in players))
        return
    playing = [asyncio.create_task(player.play()) for player in players]
    killing = asyncio.create_task(killer.kill(plan.kills))
    await asyncio.wait({killing, *playing}, timeout=plan.seconds, return_when=asyncio.FIRST_COMPLETED)
    killer.enough = True
    await killing
    stop.set()
    await killer.come_back()
    for player in players:
        player.door.closing = player.door.journal.now() + LAST_PATIENCE
    await asyncio.gather(*playing)


async def _make_other_chart(door: Door) -> None:
    body = {"class": CLASS_CHART, "uuid": OTHER_CHART}
    template = {"chart": "edge-cluster", "values": {"other": "chart"}}
    path = f"/v1/app/{CHART_TEMPLATE}/object/{OTHER_CHART}"
    for request in (Request("POST", "/v1/object", json=body), Request("PUT", path, json=template)):
        line = await door.insist("chart", "chart", "", {}, request, patience=60)
        assert line is not None and line.outcome == "yes", line
