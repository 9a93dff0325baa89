"""One run: a fresh centre, clients, something that kills, and the silence after it."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from temporalio.client import Client

from tools.chaos.centre import Address, ChaosCentre
from tools.chaos.check_put_backs import check_put_backs
from tools.chaos.edge_keys import EdgeKey, make_keys
from tools.chaos.evidence import cases_of
from tools.chaos.golden import CHART_TEMPLATE, CLASS_CHART, OTHER_CHART
from tools.chaos.journal import Journal
from tools.chaos.journaling_client import JournalingClient, SentRequest
from tools.chaos.killer import Killer
from tools.chaos.players import Player
from tools.chaos.put_backs import read_put_backs
from tools.chaos.settling import settle
from tools.chaos.stores import Stores

LAST_PATIENCE = 5.0
"""Seconds that requests under way get once everything runs again."""


@dataclass(frozen=True)
class ChaosPlan:
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

    plan: ChaosPlan
    folder: Path
    stores: Stores
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


async def run(folder: Path, plan: ChaosPlan, centre: ChaosCentre) -> Ran:
    """Runs in a folder of its own; leaves no process behind.

    Args:
        centre: a fresh one in the same folder.
    """
    began = time.monotonic()
    try:
        await asyncio.to_thread(centre.start)
        killer, left = await _with(centre, folder, plan)
        await asyncio.to_thread(centre.stop)
        stores, strikes = await asyncio.to_thread(centre.stores), killer.strikes
        seconds = time.monotonic() - began
        return Ran(plan, folder, stores, strikes.kills, strikes.put_back, seconds, tuple(left))
    finally:
        await asyncio.to_thread(centre.clear_up)


async def _with(centre: ChaosCentre, folder: Path, plan: ChaosPlan) -> tuple[Killer, list[str]]:
    journal, keys = Journal(folder / "journal.jsonl"), make_keys(folder / "edge-keys.json")
    async with playing(centre.address, keys, journal, seed=plan.seed, clients=plan.clients) as players:
        killer = Killer(centre, journal, seed=plan.seed, pace=plan.pace)
        await make_other_chart(players[0].gateway)
        await _play(players, killer, plan)
        await killer.strikes.come_back()
        left = await settle(lambda: _unfinished(centre, journal), seconds=plan.patience)
    journal.close()
    return killer, left


def _unfinished(centre: ChaosCentre, journal: Journal) -> list[str]:
    """What is still to be done, and then what a put-back has lost and nobody was told."""
    if left := centre.unfinished():
        return left
    put_backs = read_put_backs(journal.path)
    if not put_backs:
        return []
    cases = cases_of(centre.stores(), [], [], put_backs)
    return [str(violation) for case in cases for violation in check_put_backs(case)]


@asynccontextmanager
async def playing(
    address: Address, keys: list[EdgeKey], journal: Journal, *, seed: int, clients: int, first: int = 0
) -> AsyncIterator[list[Player]]:
    """Clients of a running centre; they do not play yet.

    Args:
        keys: of their edges.
        first: number of the first one; each number has lives of its own.
    """
    temporal = await Client.connect(address.temporal, lazy=True)
    gateways = [JournalingClient(address, journal) for _ in range(clients)]
    stop = asyncio.Event()
    try:
        yield [Player(seed, n, gateway, keys, temporal, stop) for n, gateway in enumerate(gateways, first)]
    finally:
        for gateway in gateways:
            await gateway.close()
        await asyncio.sleep(0.2)  # a Temporal client that is dropped at once may crash its process at exit


async def _play(players: list[Player], killer: Killer, plan: ChaosPlan) -> None:
    if not plan.kills:
        await asyncio.gather(*(player.play(plan.lives) for player in players))
        return
    lives = [asyncio.create_task(player.play()) for player in players]
    killing = asyncio.create_task(killer.kill(plan.kills))
    await asyncio.wait({killing, *lives}, timeout=plan.seconds, return_when=asyncio.FIRST_COMPLETED)
    killer.enough = True
    await killing
    players[0].stop.set()
    await killer.strikes.come_back()
    await end(players, lives)


async def end(players: Sequence[Player], lives: Sequence["asyncio.Task[None]"]) -> None:
    """Returns when what the clients have begun is answered, or soon will not be."""
    for player in players:
        player.stop.set()
        player.gateway.closing = player.gateway.journal.now() + LAST_PATIENCE
    await asyncio.gather(*lives)


async def make_other_chart(gateway: JournalingClient) -> None:
    body = {"class": CLASS_CHART, "uuid": OTHER_CHART}
    identity = {"name": "{{ name }}", "uuid": "{{ uuid }}", "organisation": "Chaos"}
    template = {"chart": "edge-cluster", "values": {"cluster": identity, "global": {"other": "chart"}}}
    path = f"/v1/app/{CHART_TEMPLATE}/object/{OTHER_CHART}"
    for request in (SentRequest("POST", "/v1/object", json=body), SentRequest("PUT", path, json=template)):
        line = await gateway.insist("chart", "chart", "", {}, request, patience=60)
        assert line is not None and line.outcome == "yes", line
