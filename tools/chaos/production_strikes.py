"""What can be done to the topology: any process of it killed, PostgreSQL's and its sessions' too.

And Temporal's databases put back to an earlier copy.
"""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from random import Random

import psutil

from tools.chaos import mischief, repository_copies, stalling_disk, wrong_clock
from tools.chaos.journal import Journal
from tools.chaos.mischief import STARTING_SECONDS, Mischief, next_of, stand_still
from tools.chaos.repository_copies import RepositoryCopies
from tools.chaos.stalling_disk import StallingDisk
from tools.chaos.temporal_databases import TemporalDatabases
from tools.production.topology import Topology

KINDS = {"gateway": 6, "worker": 6, "temporal": 3, "session": 4, "postgresql": 2, "two": 3, "put back": 2, "copy": 4}
KINDS |= {"freeze": 2, "clock": 1} | mischief.KINDS
LONG_KINDS = {"everything": 1, "again": 6} | repository_copies.KINDS | stalling_disk.KINDS
"""Takes half a minute to recover from, or to be noticed."""
LONGEST_AWAY = 2.0
"""Seconds that PostgreSQL stays away at most; everything else is started again by the supervisor."""
BACK_SECONDS = 150.0
DATABASE = "edgewright"
SESSIONS = """
SELECT pid FROM pg_stat_activity
WHERE backend_type = 'client backend' AND datname IN ('edgewright', 'temporal', 'temporal_visibility') ORDER BY pid
"""


class ProductionStrikes:
    """Implements ``Strikes``."""

    def __init__(
        self,
        topology: Topology,
        repositories: RepositoryCopies,
        disk: StallingDisk,
        journal: Journal,
        random: Random,
    ) -> None:
        self._repositories, self._disk = repositories, disk
        self._topology, self._journal, self._random = topology, journal, random
        self._server = topology.postgresql.server
        self._databases = TemporalDatabases(topology.postgresql)
        self._parts = [*topology.gateways, *topology.workers, "temporal"]
        self.kills: Counter[str] = Counter()
        self.put_back = 0
        self._mischief = Mischief(topology.ports.temporal_address, journal, random)

    def due(self, *, short: bool) -> Sequence[str]:
        killing = ["gateway", "worker", "temporal", "session", "postgresql", "put back"]
        kinds = [*killing, "freeze", "clock", *mischief.KINDS]
        self._random.shuffle(kinds)
        return ["copy", *kinds] if short else ["copy", "repository copy", *kinds, "stall", "repository put back"]

    def choose(self, *, short: bool) -> str:
        kinds = KINDS if short else KINDS | LONG_KINDS
        return self._random.choices(list(kinds), list(kinds.values()))[0]

    async def strike(self, kind: str) -> bool:
        match kind:
            case "gateway":
                return self._kill([self._random.choice(self._topology.gateways)])
            case "worker":
                return self._kill([self._random.choice(self._topology.workers)])
            case "two":
                return self._kill(self._random.sample(self._parts, 2))
            case "session":
                return await asyncio.to_thread(self._kill_session)
            case "postgresql":
                return await self._kill_postgresql([])
            case "everything":
                return await self._kill_postgresql(self._parts)
            case "copy":
                return await asyncio.to_thread(self._copy)
            case "put back":
                return await asyncio.to_thread(self._put_back)
            case "again":
                return await self._kill_again()
            case "freeze":
                return await self._freeze()
            case "stall":
                return await self._stall()
            case "clock":
                return await asyncio.to_thread(self._set_clock_ahead)
            case _ if kind in mischief.KINDS:
                return await self._mischief.do(kind)
            case _ if kind in repository_copies.KINDS:
                return await asyncio.to_thread(self._repositories.do, kind)
        return self._kill([kind])

    async def revive(self) -> None:
        assert self._topology.failure is None, self._topology.failure
        if self._server.pid is None:
            self._journal.killed("started", ["postgresql"])
            await asyncio.to_thread(self._server.start)

    async def come_back(self) -> None:
        await self.revive()
        await asyncio.to_thread(self._wait_until_all_serve)

    def _kill(self, parts: Sequence[str]) -> bool:
        """All of them or none: one that is being started again cannot be killed."""
        pids = {part: pid for part in parts if (pid := self._topology.supervisor.pid_of(part)) is not None}
        if len(pids) < len(parts):
            return False
        self._journal.killed("kill", parts)
        for pid in pids.values():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.kills.update(Counter(pids.keys()))
        return True

    async def _kill_again(self) -> bool:
        """One part, and the next one of that name while it starts."""
        part = self._random.choice(self._parts)
        before = self._topology.supervisor.pid_of(part)
        if before is None or not self._kill([part]):
            return False
        after = await next_of(lambda: self._topology.supervisor.pid_of(part), before)
        if after is not None:
            await asyncio.sleep(self._random.uniform(*STARTING_SECONDS))
            if self._topology.supervisor.pid_of(part) == after:
                self._kill([part])
        return True

    async def _freeze(self) -> bool:
        part = self._random.choice([*self._topology.gateways, *self._topology.workers])
        pid = self._topology.supervisor.pid_of(part)
        if pid is None:
            return False
        self._journal.killed("freeze", [part])
        await stand_still([pid], self._random)
        return True

    async def _stall(self) -> bool:
        """The disk of the repositories, or that of PostgreSQL: then none of its processes gets any further."""
        if self._random.random() < 0.5:
            return await self._disk.stall(self._journal, self._random, what=("git",))
        server = self._server.pid
        if server is None:
            return False
        self._journal.killed("stall", ["postgresql"])
        with suppress(psutil.NoSuchProcess):
            sessions = [each.pid for each in psutil.Process(server).children(recursive=True)]
            await stand_still([server, *sessions], self._random)
        return True

    def _set_clock_ahead(self) -> bool:
        if not self._answers():
            return False
        columns = wrong_clock.struck(self._random)
        self._journal.killed("clock", [".".join(each) for each in columns])
        ahead = f"now() + interval '{wrong_clock.AHEAD.days} days'"
        statements = "; ".join(wrong_clock.setting(*each, ahead) for each in columns)
        self._topology.postgresql.sql(statements, database=DATABASE)
        return True

    def _copy(self) -> bool:
        if not self._answers():
            return False
        self._journal.killed("copy", ["temporal"])
        self._databases.copy()
        return True

    def _put_back(self) -> bool:
        copies, server = self._databases.copies, self._topology.supervisor.pid_of("temporal")
        if not copies or server is None or not self._answers():
            return False
        self._journal.killed("put back", ["temporal"])
        self._databases.put_back(self._random.choice(copies), server=server)
        self.kills["temporal"] += 1
        self.put_back += 1
        return True

    def _answers(self) -> bool:
        """Not while it recovers from the death of a session."""
        try:
            return self._topology.postgresql.sql("SELECT 1") == "1"
        except RuntimeError:
            return False

    def _kill_session(self) -> bool:
        """PostgreSQL cannot know what the dead one has done to shared memory: it ends all, and recovers."""
        try:
            sessions = self._topology.postgresql.sql(SESSIONS).split()
        except RuntimeError:
            return False
        if not sessions:
            return False
        self._journal.killed("kill", ["session"])
        with suppress(ProcessLookupError):
            os.kill(int(self._random.choice(sessions)), signal.SIGKILL)
        self.kills["session"] += 1
        return True

    async def _kill_postgresql(self, parts: Sequence[str]) -> bool:
        """With so many parts at the same moment."""
        if parts and not self._kill(parts):
            return False
        self._journal.killed("kill", ["postgresql"])
        await asyncio.to_thread(self._server.kill)
        self.kills["postgresql"] += 1
        await asyncio.sleep(self._random.uniform(0, LONGEST_AWAY))
        await asyncio.to_thread(self._server.start)
        return True

    def _wait_until_all_serve(self) -> None:
        until = time.monotonic() + BACK_SECONDS
        while missing := [part for part in self._parts if not self._topology.serves(part)]:
            assert self._topology.failure is None, self._topology.failure
            assert time.monotonic() < until, f"{missing} did not come back\n{self._topology.last_words()}"
            time.sleep(0.1)
