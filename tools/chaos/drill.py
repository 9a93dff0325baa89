"""A restore drill: clients write while a backup is made; a store is lost and restored; the checker looks at all."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tools.chaos import requests
from tools.chaos.centre import ChaosCentre
from tools.chaos.checker import check_stores
from tools.chaos.edge_keys import make_keys
from tools.chaos.journal import Journal
from tools.chaos.players import Player
from tools.chaos.restoring import Restore, after_restores
from tools.chaos.run import end, make_other_chart, playing
from tools.chaos.settling import settle

CLIENTS = 4
BEFORE, MEANWHILE = 60, 20
"""Wishes that are answered before the backup is begun, and after it was made."""
PATIENCE = 240.0
"""Seconds."""
Made = TypeVar("Made")


class Drill:
    """One centre, and all that was ever asked of it. The methods block.

    Args:
        folder: gets the journal and the keys of the edges.
    """

    def __init__(self, centre: ChaosCentre, folder: Path, *, seed: int) -> None:
        self.centre = centre
        self._seed = seed
        self._journal = Journal(folder / "journal.jsonl")
        self._keys = make_keys(folder / "edge-keys.json")
        self._copied: tuple[float, float] | None = None
        self._restores: list[Restore] = []
        self._sequels = 0

    def written_to_while(self, back_up: Callable[[], Made]) -> Made:
        """What the backup returns; clients live before it, meanwhile and for a while after it."""
        return asyncio.run(self._written_to_while(back_up))

    def restored(self) -> None:
        """To be called when the backup is in its place, before anything runs on it."""
        assert self._copied is not None
        self._restores.append(Restore(*self._copied, self._journal.now()))

    def wrong(self) -> list[str]:
        """Has the running centre finish what it has to, plays once more, stops it: every promise it broke."""
        left = asyncio.run(self._at_rest())
        self.centre.stop()
        if left:
            return [f"not settled: {each}" for each in left]
        lines = after_restores(self._journal.lines, self._restores)
        return [str(violation) for violation in check_stores(self.centre.stores(), lines, self._keys)]

    async def _written_to_while(self, back_up: Callable[[], Made]) -> Made:
        async with playing(
            self.centre.address, self._keys, self._journal, seed=self._seed, clients=CLIENTS
        ) as players:
            await make_other_chart(players[0].gateway)
            lives = [asyncio.create_task(player.play()) for player in players]
            await self._answered(BEFORE)
            begun = self._journal.now()
            made = await asyncio.to_thread(back_up)
            self._copied = begun, self._journal.now()
            await self._answered(MEANWHILE)
            await end(players, lives)
        return made

    async def _answered(self, count: int) -> None:
        """Returns when so many more wishes were answered."""
        wanted = self._count() + count
        async with asyncio.timeout(PATIENCE):
            while self._count() < wanted:
                await asyncio.sleep(0.1)

    def _count(self) -> int:
        return len({line.wish for line in self._journal.lines if line.wish and line.outcome == "yes"})

    async def _at_rest(self) -> list[str]:
        self._sequels += 1
        number = CLIENTS * self._sequels  # nobody has lived its lives yet
        async with playing(
            self.centre.address, self._keys, self._journal, seed=self._seed, clients=1, first=number
        ) as [player]:
            for cluster in sorted({line.cluster for line in self._journal.lines if line.verb == "pause"}):
                await self._resume(player, cluster)
            await player.play(1)
        return await settle(self.centre.unfinished, seconds=PATIENCE)

    async def _resume(self, player: Player, cluster: str) -> None:
        """The backup may be of a moment at which it was paused: its client has resumed it since, in vain."""
        wish = f"resume.{self._sequels}.{cluster}"
        await player.gateway.insist(wish, "resume", cluster, {}, requests.resume(cluster), patience=PATIENCE)
