"""Looks at the edge again and again, and keeps what was seen. What cannot be seen now stays as it was seen last."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import replace
from random import Random
from typing import Protocol, TypeVar

from edgewright import __version__
from edgewright.agent.observation import MOST_NAMESPACES, Fetched, Host, Kustomized, Observation
from edgewright.agent.timing import Clock
from edgewright.agent.transitions import Transitions
from edgewright.errors import EdgewrightError

LOOK_JITTER = 0.1
HURRIED_SECONDS, HURRIED_LOOK = 60.0, 2.0
"""So long after Flux was asked for something, looks come so often, in seconds, until it has applied that."""
VERSION_SECONDS = 3600.0
"""The API server is asked for its version so rarely: it changes by an upgrade only."""

T = TypeVar("T")


class Edge(Protocol):
    """What can be asked of the Kubernetes cluster; any question may raise an ``EdgewrightError``."""

    async def hosts(self) -> list[Host]: ...

    async def namespaces(self, *, most: int) -> list[str]: ...

    async def sources(self, namespace: str, cluster: str) -> list[Fetched]: ...

    async def kustomizations(self, namespace: str, cluster: str) -> list[Kustomized]: ...

    async def version(self) -> str: ...


class Watch:
    """Of one edge.

    Args:
        certificate: asks sealed-secrets for its certificate, PEM.
        namespace: of Flux's objects.
        cluster: UUID, as the centre knows it.
        look_seconds: between two looks.
    """

    def __init__(
        self,
        edge: Edge,
        certificate: Callable[[], Awaitable[str]],
        *,
        namespace: str,
        cluster: str,
        look_seconds: float,
        clock: Clock,
        chance: Random,
    ) -> None:
        self._edge = edge
        self._certificate = certificate
        self._namespace = namespace
        self._cluster = cluster
        self._look_seconds = look_seconds
        self._clock = clock
        self._chance = chance
        self._matters = {
            name: Transitions(name)
            for name in ("nodes", "namespaces", "flux_sources", "flux", "sealed_secrets", "version")
        }
        self._version_due = -math.inf
        self._hurried_until = -math.inf
        self._expected = ""
        self._hurried = asyncio.Event()
        self.seen = Observation()
        """What was seen last."""
        self.news = asyncio.Event()
        """Set when a look saw something else than the one before."""

    async def run(self) -> None:
        """Looks until it is cancelled."""
        while True:
            await self.look()
            pause = self._look_seconds
            if self._clock.monotonic() < self._hurried_until and not (self.seen.revision or "").endswith(
                self._expected
            ):
                pause = min(pause, HURRIED_LOOK)
            self._hurried.clear()
            await self._clock.sleep(
                pause * self._chance.uniform(1 - LOOK_JITTER, 1 + LOOK_JITTER), until=self._hurried
            )

    def hurry(self, commit: str) -> None:
        """Looks more often for a while, until this commit is applied: something is to happen."""
        self._expected = commit
        self._hurried_until = self._clock.monotonic() + HURRIED_SECONDS
        self._hurried.set()

    async def look(self) -> None:
        """One look at everything, each part for itself."""
        seen = self.seen
        hosts = await self._ask("nodes", self._edge.hosts())
        if hosts is not None:
            seen = replace(seen, hosts=tuple(sorted(hosts, key=lambda host: host.hostname)))
        namespaces = await self._ask("namespaces", self._edge.namespaces(most=MOST_NAMESPACES + 1))
        if namespaces is not None:
            seen = seen.with_namespaces(namespaces)
        sources = await self._ask("flux_sources", self._edge.sources(self._namespace, self._cluster))
        if sources is not None:
            seen = seen.with_sources(sources)
        found = await self._ask("flux", self._edge.kustomizations(self._namespace, self._cluster))
        if found is not None:
            seen = seen.with_flux(found, now=self._clock.now())
        certificate = await self._ask("sealed_secrets", self._certificate())
        if certificate is not None:
            seen = replace(seen, certificate=certificate)
        kubernetes = await self._version()
        if kubernetes is not None:
            seen = replace(seen, versions={"agent": __version__, "kubernetes": kubernetes})
        if seen != self.seen:
            self.seen = seen
            self.news.set()

    async def _version(self) -> str | None:
        if self._clock.monotonic() < self._version_due:
            return None
        version = await self._ask("version", self._edge.version())
        if version is not None:
            self._version_due = self._clock.monotonic() + VERSION_SECONDS
        return version

    async def _ask(self, matter: str, question: Awaitable[T]) -> T | None:
        """The answer; None, and a line in the log when that is new, if there is none."""
        try:
            answer = await question
        except EdgewrightError as error:
            self._matters[matter].trouble("unseen", detail=error.detail, code=error.code)
            return None
        self._matters[matter].well("seen")
        return answer
