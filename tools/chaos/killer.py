"""Strikes at a running centre at random moments."""

import asyncio
from random import Random

from tools.chaos.centre import ChaosCentre
from tools.chaos.journal import Journal

SHORT = 100
"""Kills; a run with fewer is a short one."""
MOST_TRIES = 100
"""Attempts at a strike that has to happen once; one that can never be done is a defect of its own."""
LONGEST_WAIT = 12.0
"""Seconds that a kill is put off for an answer; the next kill may well hit what is just coming up."""
BESIDE = frozenset({"again", "freeze", "flood", "stall", "repository copy", "repository put back"})
"""What takes long and needs nobody to stay alive: others are struck meanwhile."""


class Killer:
    """Kills until so many processes have died by its hand.

    Args:
        pace: mean time between two kills, seconds.
    """

    def __init__(self, centre: ChaosCentre, journal: Journal, *, seed: int, pace: float) -> None:
        self._journal = journal
        self._random = Random(f"{seed}/kills")
        self.strikes = centre.strikes(journal, self._random)
        self._pace = pace
        self.enough = False
        self._beside: dict[str, asyncio.Task[bool]] = {}

    @property
    def total(self) -> int:
        return sum(self.strikes.kills.values())

    async def kill(self, count: int) -> None:
        """Returns when so many processes were killed, or enough; what is due has happened once then, too."""
        wanted = self.strikes.due(short=count < SHORT)
        due, step, tries = list(wanted), max(1, count // len(wanted)), 0
        while due or (self.total < count and not self.enough):
            await asyncio.sleep(self._random.uniform(0.2, 2 * self._pace - 0.2))
            if self._random.random() < 0.7:
                await self._until_something_is_answered()
            await self.strikes.revive()
            if due and (self.enough or self.total >= step * (len(wanted) - len(due))):
                tries += 1
                assert tries < MOST_TRIES, f"the strike {due[0]} could not be done {tries} times on end"
                if await self.strikes.strike(due[0]):
                    due, tries = due[1:], 0
            else:
                kind = self.strikes.choose(short=count < SHORT)
                if await self._strike(kind) and kind in due:
                    due, tries = [other for other in due if other != kind], 0
        await asyncio.gather(*self._beside.values())

    async def _strike(self, kind: str) -> bool:
        """Whether it has happened; of one that is done beside others: whether the one before has."""
        if kind not in BESIDE:
            return await self.strikes.strike(kind)
        before = self._beside.get(kind)
        if before is not None and not before.done():
            return False
        self._beside[kind] = asyncio.create_task(self.strikes.strike(kind))
        return before is not None and before.result()

    async def _until_something_is_answered(self) -> None:
        """However slow the machine is, work is done between most kills."""
        killed = self._journal.kills[-1].at if self._journal.kills else 0.0
        until = self._journal.now() + LONGEST_WAIT
        while self._journal.now() < until:
            if any(line.outcome == "yes" and line.began > killed for line in self._journal.lines[-20:]):
                return
            await asyncio.sleep(0.1)
