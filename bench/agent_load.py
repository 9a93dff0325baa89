"""``python -m bench.agent_load beats|waits|polls|secrets``: thousands of edges, as a process of its own.

``beats`` are agents: each has the agent's own HTTP module (``edgewright.agent.centre``), a credential of its own, and
sends heartbeats at the interval, ten percent early or late, some of them with a status that differs. ``waits`` are
agents that have their answers held back, as the agent does (``edgewright.agent.holding``). ``polls`` are
Flux's sources: each asks for the refs of its repository as Flux's Git client does, on a new connection, as often.

``secrets`` is an application team: it writes a secret of each of some clusters at each interval.

Edges do not wait for each other: what is late because the gateway is slow is sent all the same. Reads a ``Task``, as
JSON, from the first line of standard input, says ``ready`` on standard output, begins at the second line, and in the
end says what came of it, as JSON.
"""

import asyncio
import base64
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from random import Random
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import httpx

from bench.edge_identities import secret_of, status_of
from edgewright.agent.attachment import Attachment
from edgewright.agent.centre import Centre
from edgewright.agent.holding import Holding
from edgewright.agent.messages import ReceivedHeartbeatAnswer, SentHeartbeat
from edgewright.agent.pauses import Backoff, until_next_beat
from edgewright.agent.reporter import Nonces
from edgewright.agent.timing import RealClock
from edgewright.domain.cluster import Role
from edgewright.errors import EdgewrightError

PATIENCE = 60.0
BEGIN = 0.7
"""Share of the settling time after which every edge has begun."""
SELDOM = 10
"""Unless told otherwise, one cluster in so many gets secrets."""


@dataclass(frozen=True)
class Task:
    """What to do.

    Args:
        clusters: UUIDs.
        interval: seconds between two requests of one edge.
        rounds: intervals to go on for.
        settles: seconds at the beginning that are counted apart, and over most of which the edges begin; 0: those
            of the first interval.
        changes: the part of the heartbeats that another status goes with.
        certificate: PEM; trusted and reported.
        revision: that the edges report.
        token: of an operator who may write secrets; only ``secrets`` needs it.
        seldom: one cluster in so many gets secrets.
    """

    url: str
    clusters: list[str]
    interval: float
    rounds: float
    changes: float
    certificate: str
    revision: str
    settles: float = 0.0
    token: str = ""
    seldom: int = SELDOM


@dataclass(frozen=True)
class Write:
    """One try to set a secret. ``answered``: with success; whatever else came, the value may be there."""

    path: str
    value: str
    answered: bool


@dataclass
class Answers:
    """To one kind of request; seconds."""

    taken: list[float] = field(default_factory=list)
    failed: Counter[str] = field(default_factory=Counter)

    def told(self, seconds: float) -> dict[str, Any]:
        """Rate over so many seconds, and how long the answers took."""
        many = len(self.taken) > 1
        cuts = statistics.quantiles(self.taken, n=1000) if many else [0.0] * 999
        return {
            "per_second": len(self.taken) / seconds,
            "p50": cuts[499],
            "p99": cuts[989],
            "slowest": max(self.taken, default=0.0),
            "answered": len(self.taken),
            "failed": dict(self.failed),
        }


class Crowd:
    """All edges of one task."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.chance = Random(7)
        self.begun = 0.0
        self.rounds: dict[str, dict[str, Answers]] = {"first": {}, "later": {}}
        self.late: list[float] = []
        self.writes: list[Write] = []

    async def run(self, edges: Sequence["Edge"]) -> dict[str, Any]:
        """Lets each edge live its own life; returns what came of it."""
        self.begun = time.monotonic()
        until = self.begun + self.task.interval * self.task.rounds
        used = time.process_time()
        await asyncio.gather(*(edge(self, until) for edge in edges))
        lengths = {"first": self._settled, "later": self.task.interval * self.task.rounds - self._settled}
        return {
            "rounds": {
                name: {kind: answers.told(lengths[name]) for kind, answers in kinds.items()}
                for name, kinds in self.rounds.items()
            },
            "cores": (time.process_time() - used) / (time.monotonic() - self.begun),
            "late": statistics.quantiles(self.late, n=100)[98] if len(self.late) > 1 else 0.0,
            "writes": [asdict(write) for write in self.writes],
        }

    def until_first(self) -> float:
        """How long an edge waits until it begins: those who begin with a new centre have been silent for long."""
        return self.chance.uniform(0, max(self.task.interval, BEGIN * self.task.settles))

    @property
    def _settled(self) -> float:
        return self.task.settles or self.task.interval

    async def ask(self, kind: str, request: Callable[[], Awaitable[Any]], *, held: float = 0.0) -> Any:
        """One request, counted; None if it failed.

        Args:
            held: seconds for which the answer may be held back; what it took beyond them counts.
        """
        begun = time.monotonic()
        name = "first" if begun - self.begun < self._settled else "later"
        answers = self.rounds[name].setdefault(kind, Answers())
        try:
            answer = await asyncio.wait_for(request(), PATIENCE + held)
        except (EdgewrightError, httpx.HTTPError, OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            answers.failed[getattr(error, "code", None) or f"{type(error).__name__} {error}".strip()] += 1
            return None
        taken = time.monotonic() - begun
        answers.taken.append(taken - held if taken >= held else taken)
        return answer


Edge = Callable[[Crowd, float], Awaitable[None]]
"""The life of one edge in a crowd, until a moment of the monotonic clock."""


def at_intervals(ask: Callable[[], Awaitable[None]]) -> Edge:
    """Asks at each interval."""

    async def live(crowd: Crowd, until: float) -> None:
        due = crowd.begun + crowd.until_first()
        while due < until:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            crowd.late.append(time.monotonic() - due)
            await ask()
            due = max(due, time.monotonic()) + until_next_beat(crowd.task.interval, crowd.chance)

    return live


class Agent:
    """Plays the agent of one edge."""

    def __init__(self, crowd: Crowd, cluster: str) -> None:
        self._crowd = crowd
        task = crowd.task
        password = secret_of(UUID(cluster), Role.AGENT)
        self._centre = Centre(Attachment(cluster, password, task.url, cluster, 1, task.certificate))
        self._digest: str | None = None
        self._nonces = Nonces()
        self._holding, self._backoff = Holding(RealClock(), crowd.chance), Backoff(crowd.chance)
        self._changes = 0

    async def beat(self) -> None:
        """A heartbeat; and a status, if the centre wants one or the edge has changed."""
        await self._say(self._next())

    async def wait(self, crowd: Crowd, until: float) -> None:
        """One heartbeat after the other, each held back for as long as the agent offers."""
        await asyncio.sleep(crowd.until_first())
        while (began := time.monotonic()) < until:
            known = self._holding.known_digest
            offered = self._holding.offer(crowd.task.interval)
            beat = replace(self._next(), wants_digest=known, wait=offered, revisions=self._holding.revisions)
            answer = await self._say(beat, held=offered if known else 0.0)
            if answer is None:
                await asyncio.sleep(self._backoff.after_failure())
                continue
            self._backoff.reset()
            await asyncio.sleep(self._holding.answered(beat, answer, time.monotonic() - began))

    def _next(self) -> SentHeartbeat:
        return SentHeartbeat(
            sent_at=datetime.now(UTC),
            nonce=self._nonces.current,
            previous_nonce=self._nonces.previous,
            observed_revision=self._crowd.task.revision,
            status_digest=self._digest,
        )

    async def _say(self, beat: SentHeartbeat, *, held: float = 0.0) -> ReceivedHeartbeatAnswer | None:
        kind = "held heartbeat" if held else "heartbeat"
        answer: ReceivedHeartbeatAnswer | None = await self._crowd.ask(
            kind, lambda: self._centre.heartbeat(beat), held=held
        )
        if answer is not None:
            self._nonces.answered()
        changed = self._crowd.chance.random() < self._crowd.task.changes
        if answer is not None and (answer.status_due or changed):
            self._changes += changed
            status = status_of(self._crowd.task.certificate, self._crowd.task.revision, self._changes)
            self._digest = await self._crowd.ask("status", lambda: self._centre.put_status(status))
        return answer


class Source:
    """Flux's, of one edge. It names the ref that it wants on a version of the protocol with one answer."""

    def __init__(self, crowd: Crowd, cluster: str) -> None:
        self._crowd = crowd
        address = urlsplit(crowd.task.url)
        self._at = (address.hostname, address.port)
        word = base64.b64encode(f"{cluster}:{secret_of(UUID(cluster), Role.FLUX)}".encode()).decode()
        self._request = (
            f"GET /uuid/{cluster}/info/refs?service=git-upload-pack HTTP/1.1\r\n"
            f"Host: {address.netloc}\r\nAuthorization: Basic {word}\r\nUser-Agent: git/1.0\r\n"
            "Accept: */*\r\nConnection: close\r\n\r\n"
        ).encode()

    async def poll(self) -> None:
        await self._crowd.ask("poll", self._refs)

    async def _refs(self) -> bytes:
        reader, writer = await asyncio.open_connection(*self._at)
        try:
            writer.write(self._request)
            answer = await reader.read()
        finally:
            writer.close()
        if not answer.startswith(b"HTTP/1.1 200 ") or b"refs/heads/main" not in answer:
            raise ConnectionError(answer[:40].decode(errors="replace"))
        return answer


class Team:
    """Writes secrets of one cluster, each to a name that it has used before."""

    def __init__(self, crowd: Crowd, http: httpx.AsyncClient, cluster: str) -> None:
        self._crowd = crowd
        self._http = http
        self._cluster = cluster
        self._written = 0

    async def write(self) -> None:
        path = f"/v1/cluster/{self._cluster}/secret/team/secret-{self._written % 3}/password"
        value = uuid4().hex
        self._written += 1
        answer = await self._crowd.ask("secret", lambda: self._put(path, value))
        self._crowd.writes.append(Write(path, value, answered=answer is not None))

    async def _put(self, path: str, value: str) -> bool:
        answer = await self._http.put(path, content=value.encode())
        if answer.status_code != 204:
            raise ConnectionError(f"{answer.status_code} {answer.text[:200]}")
        return True


async def run(kind: str, task: Task) -> dict[str, Any]:
    """Does a task."""
    crowd = Crowd(task)
    if kind == "beats":
        edges = [at_intervals(Agent(crowd, cluster).beat) for cluster in task.clusters]
    elif kind == "waits":
        edges = [Agent(crowd, cluster).wait for cluster in task.clusters]
    elif kind == "secrets":
        http = httpx.AsyncClient(
            base_url=task.url, headers={"Authorization": f"Bearer {task.token}"}, timeout=PATIENCE
        )
        edges = [at_intervals(Team(crowd, http, cluster).write) for cluster in task.clusters[:: task.seldom]]
    else:
        edges = [at_intervals(Source(crowd, cluster).poll) for cluster in task.clusters]
    print("ready", flush=True)
    sys.stdin.readline()
    return await crowd.run(edges)


def main() -> None:
    task = Task(**json.loads(sys.stdin.readline()))
    print(json.dumps(asyncio.run(run(sys.argv[1], task))), flush=True)


def described(task: Task) -> str:
    """A task for the standard input of this program."""
    return json.dumps(asdict(task))


if __name__ == "__main__":
    main()
