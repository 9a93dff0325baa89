"""What can be done to an `edgewright up`: parts killed or frozen, Temporal's file put back, and mischief."""

import asyncio
import os
import signal
import sqlite3
import time
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from random import Random

from embedded import EmbeddedEdgewright
from supervised import living

from tools.chaos import mischief, repository_copies, stalling_disk, wrong_clock
from tools.chaos.journal import Journal
from tools.chaos.mischief import STARTING_SECONDS, Mischief, next_of, stand_still
from tools.chaos.repository_copies import RepositoryCopies
from tools.chaos.stalling_disk import StallingDisk
from tools.chaos.temporal_file import TemporalFile

PARTS = ("gateway", "worker", "temporal")
DEATHS, WINDOW = 4, 62.0
"""The supervisor gives up at the fifth death of a part within a minute: what it promises is a restart before that."""
KINDS = {"one": 14, "two": 3, "parts": 1, "put back": 2, "copy": 6, "freeze": 2, "clock": 1}
KINDS |= mischief.KINDS
UP_KINDS = {"up": 1, "everything": 1}
"""These take several seconds to recover from; a short run has one of them."""


LONG_KINDS = UP_KINDS | {"again": 4} | repository_copies.KINDS | stalling_disk.KINDS
"""Not in a short run."""


class EmbeddedStrikes:
    """Implements ``Strikes``."""

    def __init__(
        self,
        up: EmbeddedEdgewright,
        file: TemporalFile,
        repositories: RepositoryCopies,
        disk: StallingDisk,
        journal: Journal,
        random: Random,
    ) -> None:
        self._repositories, self._disk = repositories, disk
        self._up, self._file, self._journal, self._random = up, file, journal, random
        self._deaths: dict[str, deque[float]] = {}
        self.kills: Counter[str] = Counter()
        self.put_back = 0
        self._mischief = Mischief(str(up.endpoints()["temporal"]), journal, random)
        self._fresh()

    def due(self, *, short: bool) -> Sequence[str]:
        later = ["put back", "freeze", "clock", *mischief.KINDS, self._random.choice(list(UP_KINDS))]
        self._random.shuffle(later)
        return ["copy", *later] if short else ["copy", "repository copy", *later, "stall", "repository put back"]

    def choose(self, *, short: bool) -> str:
        if not any(map(self._may_die, PARTS)):
            return "everything"
        kinds = KINDS if short else KINDS | LONG_KINDS
        return self._random.choices(list(kinds), list(kinds.values()))[0]

    async def strike(self, kind: str) -> bool:
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
            case "again":
                return await self._kill_again()
            case "stall":
                return await self._disk.stall(self._journal, self._random)
            case "freeze":
                return await self._freeze()
            case "clock":
                return await asyncio.to_thread(self._set_clock_ahead)
            case _ if kind in mischief.KINDS:
                return await self._mischief.do(kind)
            case _ if kind in repository_copies.KINDS:
                return await asyncio.to_thread(self._repositories.do, kind)
        return await asyncio.to_thread(self._file.copy)

    async def revive(self) -> None:
        if self._up.ended():
            said = self._up.said().strip().splitlines()
            self._journal.killed("up ended", said[-2:])
            self._fresh()
            self._up.begin()
            # Somebody who starts it looks whether it runs; now and then it is killed before.
            if self._random.random() < 0.8:
                await asyncio.to_thread(self._wait_until_up)

    async def come_back(self) -> None:
        await self.revive()
        await asyncio.to_thread(self._wait_until_up)

    def _kill_parts(self, count: int) -> bool:
        children = self._up.children()
        may = [part for part in PARTS if part in children and self._may_die(part)]
        if len(may) < count:
            return False
        chosen = self._random.sample(may, count)
        self._journal.killed("kill", chosen)
        for part in chosen:
            self._die(part, children[part])
        return True

    async def _kill_again(self) -> bool:
        """One part, and the next one of that name while it starts."""
        may = [part for part in PARTS if self._may_die(part, twice=True)]
        part = self._random.choice(may) if may else ""
        before = self._up.children().get(part)
        if before is None:
            return False
        self._journal.killed("kill", [part])
        self._die(part, before)
        after = await next_of(lambda: self._up.children().get(part), before)
        if after is not None:
            await asyncio.sleep(self._random.uniform(*STARTING_SECONDS))
            if living(after):
                self._journal.killed("kill", [part])
                self._die(part, after)
        return True

    async def _freeze(self) -> bool:
        part = self._random.choice(("gateway", "worker"))
        pid = self._up.children().get(part)
        if pid is None:
            return False
        self._journal.killed("freeze", [part])
        await stand_still([pid], self._random)
        return True

    def _set_clock_ahead(self) -> bool:
        ahead = (datetime.now(UTC) + wrong_clock.AHEAD).replace(tzinfo=None).isoformat(sep=" ")
        columns = wrong_clock.struck(self._random)
        self._journal.killed("clock", [".".join(each) for each in columns])
        try:
            with closing(sqlite3.connect(self._up.home / "edgewright.db", timeout=5)) as database, database:
                for table, column in columns:
                    database.execute(wrong_clock.setting(table, column, "?"), (ahead,))
        except sqlite3.OperationalError:
            return False
        return True

    async def _put_back(self) -> bool:
        copies, children = self._file.copies, self._up.children()
        if not copies or "temporal" not in children or not self._may_die("temporal") or not self._up.running:
            return False
        copy = self._random.choice(copies)
        self._journal.killed("put back", ["temporal"])
        await asyncio.to_thread(
            self._file.put_back, copy, supervisor=self._up.running.pid, server=children["temporal"]
        )
        self._note("temporal")
        self.put_back += 1
        return True

    async def _kill_up(self, *, everything: bool) -> None:
        running = self._up.running
        assert running is not None
        children = self._up.children() if everything else {}
        self._journal.killed("kill", ["up", *children])
        for pid in (running.pid, *children.values()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.kills.update(["up", *children])
        await asyncio.to_thread(running.wait, 20)
        await self.revive()

    def _wait_until_up(self) -> None:
        until = time.monotonic() + 150
        while "Press Ctrl-C to stop." not in self._up.said():
            if self._up.ended():
                self._journal.killed("up ended", self._up.said().strip().splitlines()[-2:])
                self._fresh()
                self._up.begin()
            assert time.monotonic() < until, self._up.said()
            time.sleep(0.1)

    def _die(self, part: str, pid: int) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        self._note(part)

    def _note(self, part: str) -> None:
        self.kills[part] += 1
        self._deaths[part].append(time.monotonic())

    def _may_die(self, part: str, *, twice: bool = False) -> bool:
        recent = [at for at in self._deaths[part] if time.monotonic() - at < WINDOW]
        return len(recent) + twice < DEATHS

    def _fresh(self) -> None:
        self._deaths = {part: deque(maxlen=DEATHS + 1) for part in PARTS}
