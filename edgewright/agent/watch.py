"""Looks at the edge again and again, and keeps what was seen. What cannot be seen now stays as it was seen last."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Protocol, TypeVar

from edgewright.agent.absence import Absence
from edgewright.agent.lacks import KUSTOMIZATIONS, NODES, RELEASES, SEALED_SECRETS, SOURCES, Unopened
from edgewright.agent.observation import MOST_NAMESPACES, Fetched, Host, Kustomized, Observation, Released
from edgewright.agent.opening import Opening, Stage
from edgewright.agent.passwords import HeldSecret
from edgewright.agent.programs import EdgePrograms
from edgewright.agent.silence import FluxSilence
from edgewright.agent.timing import Clock
from edgewright.agent.transitions import Transitions
from edgewright.errors import EdgewrightError

LOOK_JITTER = 0.1
HURRIED_SECONDS, HURRIED_LOOK = 60.0, 2.0
"""So long after Flux was asked for something, looks come so often, in seconds, until it has applied that."""
OPENINGS_SECONDS = 60.0
"""SealedSecrets are many and large: they are looked at when Flux has applied something, while one waits for its
controller, while a refusal is new, and else so rarely."""
NEW_REFUSAL_SECONDS = 600.0
"""So long after a refusal somebody may be mending what stands in the way, or Kubernetes is about to collect it."""

_RESOURCES = {
    "nodes": NODES,
    "flux_sources": SOURCES,
    "flux": KUSTOMIZATIONS,
    "flux_releases": RELEASES,
    "opened_secrets": SEALED_SECRETS,
}
"""What the agent needs a right to see."""

T = TypeVar("T")


class WatchedEdge(Protocol):
    """What can be asked of the Kubernetes cluster; any question may raise an ``EdgewrightError``."""

    async def hosts(self) -> list[Host]: ...

    async def namespaces(self, *, most: int) -> list[str]: ...

    async def sources(self, namespace: str, cluster: str) -> list[Fetched]: ...

    async def kustomizations(self, namespace: str, cluster: str) -> list[Kustomized]: ...

    async def releases(self, namespace: str, cluster: str) -> list[Released]: ...

    async def openings(self) -> list[Opening]: ...

    async def version(self) -> str: ...

    async def held_secret(self, namespace: str, name: str) -> HeldSecret | None: ...

    async def may_change_secret(self, namespace: str, name: str) -> bool: ...

    async def document(self, path: str, accept: str, *, where: str) -> Mapping[str, Any] | None: ...


class Watch:
    """Looks at one edge and keeps what was seen.

    Args:
        certificate: asks sealed-secrets for its certificate, PEM.
        namespace: of Flux's objects.
        cluster: UUID, as the centre knows it.
        look_seconds: between two looks.
        image: that the agent runs from; None: nobody has said.
        unopened: values that no key of the edge opens, as known now; None: not tried yet.
    """

    def __init__(
        self,
        edge: WatchedEdge,
        certificate: Callable[[], Awaitable[str]],
        *,
        namespace: str,
        cluster: str,
        look_seconds: float,
        clock: Clock,
        chance: Random,
        image: str | None = None,
        unopened: Callable[[], tuple[Unopened, ...] | None] = lambda: None,
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
            for name in (
                "nodes",
                "namespaces",
                "flux_sources",
                "flux",
                "flux_releases",
                "sealed_secrets",
                "opened_secrets",
            )
        }
        self._openings_due = -math.inf
        self._refused: frozenset[str] = frozenset()
        self._refused_lately_until = -math.inf
        self._unopened = unopened
        self.absence = Absence(edge, namespace=namespace, cluster=cluster, clock=clock)
        self._programs = EdgePrograms(edge, cluster=cluster, image=image, clock=clock)
        self._silence = FluxSilence(look_seconds=look_seconds, clock=clock)
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
            if self._clock.monotonic() < self._hurried_until and not self._has_arrived():
                pause = min(pause, HURRIED_LOOK)
            self._hurried.clear()
            await self._clock.sleep(
                pause * self._chance.uniform(1 - LOOK_JITTER, 1 + LOOK_JITTER), until=self._hurried
            )

    def hurry(self, commit: str) -> None:
        """Looks more often for a while, until this commit is applied and opened: something is to happen."""
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
        openings = await self._openings(seen)  # after Flux was looked at: what it has applied is seen here
        if openings is not None:
            seen = replace(seen, openings=openings)
        releases = await self._ask("flux_releases", self._edge.releases(self._namespace, self._cluster))
        if releases is not None:
            seen = seen.with_releases(releases, now=self._clock.now())
        certificate = await self._ask("sealed_secrets", self._certificate())
        if certificate is not None:
            seen = replace(seen, certificate=certificate)
        await self._programs.look()
        await self.absence.look(sources, found, releases)
        self._silence.look(sources, found, is_young=self.absence.is_young)
        seen = replace(
            seen,
            versions=self._programs.versions,
            flux_is_ours=self._programs.flux_is_ours,
            anchor=self.absence.anchor,
            missing=self.absence.missing,
            unknown=self.absence.unknown,
            silent=self._silence.silent,
            unopened=self._unopened(),
        )
        if seen != self.seen:
            self.seen = seen
            self.news.set()

    def _has_arrived(self) -> bool:
        return (self.seen.revision or "").endswith(self._expected) and not _is_pending(self.seen)

    async def _openings(self, seen: Observation) -> tuple[Opening, ...] | None:
        applied_before = [(each.name, each.applied) for each in self.seen.kustomizations or ()]
        is_due = (
            self._clock.monotonic() >= self._openings_due
            or _is_pending(seen)
            or (self._refused and self._clock.monotonic() < self._refused_lately_until)
            or [(each.name, each.applied) for each in seen.kustomizations or ()] != applied_before
        )
        if not is_due:
            return None
        found = await self._ask("opened_secrets", self._edge.openings())
        if found is None:
            return None
        self._openings_due = self._clock.monotonic() + OPENINGS_SECONDS
        self._note_refusals(found)
        return tuple(sorted(found, key=lambda each: (each.namespace, each.name)))

    def _note_refusals(self, found: Sequence[Opening]) -> None:
        refused = frozenset(each.digest for each in found if each.stage is Stage.REFUSED)
        if refused - self._refused:
            self._refused_lately_until = self._clock.monotonic() + NEW_REFUSAL_SECONDS
        self._refused = refused

    async def _ask(self, matter: str, question: Awaitable[T]) -> T | None:
        """The answer; None, and a line in the log when that is new, if there is none."""
        try:
            answer = await question
        except EdgewrightError as error:
            self._matters[matter].trouble("unseen", detail=error.detail, code=error.code)
            if matter in _RESOURCES:
                self.absence.answered(_RESOURCES[matter], error)
            return None
        self._matters[matter].well("seen")
        if matter in _RESOURCES:
            self.absence.answered(_RESOURCES[matter])
        return answer


def _is_pending(seen: Observation) -> bool:
    return any(each.stage is Stage.PENDING for each in seen.openings or ())
