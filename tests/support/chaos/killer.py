"""Kills parts of a running centre at random moments, and starts what does not start by itself."""

import asyncio
import os
import signal
import time
from collections import Counter, deque
from contextlib import suppress
from random import Random

from embedded import EmbeddedEdgewright

from chaos.journal import Journal
from chaos.temporal_file import TemporalFile

PARTS = ("gateway", "worker", "temporal")
DEATHS, WINDOW = 4, 62.0
"""The supervisor gives up at the fifth death of a part within a minute: what it promises is a restart before that."""
KINDS = {"one": 14, "two": 3, "parts": 1, "put back": 2, "copy": 6}
UP_KINDS = {"up": 1, "everything": 1}
"""These take several seconds to recover from; a short run has one of them."""
SHORT = 100
LONGEST_WAIT = 12.0
"""Seconds that a kill is put off for an answer; the next kill may well hit what is just coming up."""


class Killer:
    """Kills until so many processes have died by its hand.

    Args:
        pace: mean time between two kills, seconds.
    """

    def __init__(
        self, centre: EmbeddedEdgewright, file: TemporalFile, journal: Journal, *, seed: int, pace: float
    ) -> None:
        self._centre, self._file, self._journal = centre, file, journal
        self._random = Random(f"{seed}/kills")
        self._pace = pace
        self._deaths: dict[str, deque[float]] = {}
        self.kills: Counter[str] = Counter()
        self.put_back = 0
        self.enough = False
        self._fresh()

    @property
    def total(self) -> int:
        return sum(self.kills.values())

    async def kill(self, count: int) -> None:
        """Returns when so many processes were killed, or enough; what is due has happened once then, too."""
        later = ["put back", self._random.choice(list(UP_KINDS))]
        self._random.shuffle(later)
        due = ["copy", *later]
        step = max(1, count // len(due))
        kinds = KINDS if count < SHORT else KINDS | UP_KINDS
        while due or (self.total < count and not self.enough):
            await asyncio.sleep(self._random.uniform(0.2, 2 * self._pace - 0.2))
            if self._random.random() < 0.7:
                await self._until_something_is_answered()
            await self._restart_if_ended()
            if due and (self.enough or self.total >= step * (3 - len(due))):
                due = due[1:] if await self._strike(due[0]) else due
            elif not any(map(self._may_die, PARTS)):
                await self._kill_up(everything=True)
            else:
                await self._strike(self._random.choices(list(kinds), list(kinds.values()))[0])

    async def come_back(self) -> None:
        """Everything runs again."""
        await self._restart_if_ended()
        await asyncio.to_thread(self._wait_until_up)

    async def _until_something_is_answered(self) -> None:
        """However slow the machine is, work is done between most kills."""
        killed = self._journal.kills[-1].at if self._journal.kills else 0.0
        until = self._journal.now() + LONGEST_WAIT
        while self._journal.now() < until:
            if any(line.outcome == "yes" and line.began > killed for line in self._journal.lines[-20:]):
                return
            await asyncio.sleep(0.1)

    async def _strike(self, kind: str) -> bool:
        match kind:
            case "one":
                return self._kill_parts(1)
            case "two":
                return self._kill_parts(2)
            case "parts":
                return self._kill_parts(3)
            case "put back":
                return await self._put_back()
            case "up" | "everything":
                await self._kill_up(everything=kind == "everything")
                return True
        return await asyncio.to_thread(self._file.copy)

    def _kill_parts(self, count: int) -> bool:
        children = self._centre.children()
        may = [part for part in PARTS if part in children and self._may_die(part)]
        if len(may) < count:
            return False
        chosen = self._random.sample(may, count)
        self._journal.killed("kill", chosen)
        for part in chosen:
            self._die(part, children[part])
        return True

    async def _put_back(self) -> bool:
        copies, children = self._file.copies, self._centre.children()
        if not copies or "temporal" not in children or not self._may_die("temporal") or not self._centre.running:
            return False
        copy = self._random.choice(copies)
        self._journal.killed("put back", ["temporal"])
        await asyncio.to_thread(
            self._file.put_back, copy, supervisor=self._centre.running.pid, server=children["temporal"]
        )
        self._note("temporal")
        self.put_back += 1
        return True

    async def _kill_up(self, *, everything: bool) -> None:
        running = self._centre.running
        assert running is not None
        children = self._centre.children() if everything else {}
        self._journal.killed("kill", ["up", *children])
        for pid in (running.pid, *children.values()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.kills.update(["up", *children])
        await asyncio.to_thread(running.wait, 20)
        await self._restart_if_ended()

    async def _restart_if_ended(self) -> None:
        if self._centre.ended():
            said = self._centre.said().strip().splitlines()
            self._journal.killed("up ended", said[-2:])
            self._fresh()
            self._centre.begin()
            # Somebody who starts it looks whether it runs; now and then it is killed before.
            if self._random.random() < 0.8:
                await asyncio.to_thread(self._wait_until_up)

    def _wait_until_up(self) -> None:
        until = time.monotonic() + 150
        while "Ctrl-C stops everything." not in self._centre.said():
            if self._centre.ended():
                self._journal.killed("up ended", self._centre.said().strip().splitlines()[-2:])
                self._fresh()
                self._centre.begin()
            assert time.monotonic() < until, self._centre.said()
            time.sleep(0.1)

    def _die(self, part: str, pid: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        self._note(part)

    def _note(self, part: str) -> None:
        self.kills[part] += 1
        self._deaths[part].append(time.monotonic())

    def _may_die(self, part: str) -> bool:
        recent = [at for at in self._deaths[part] if time.monotonic() - at < WINDOW]
        return len(recent) < DEATHS

    def _fresh(self) -> None:
        self._deaths = {part: deque(maxlen=DEATHS + 1) for part in PARTS}
