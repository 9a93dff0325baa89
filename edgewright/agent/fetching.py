"""Asks Flux to fetch at once what the centre wants fetched, instead of at its next interval.

It sets the annotation that Flux's own command sets, and may change nothing else of a source: a policy of the API
server sees to that (``fetching-policy.yaml``). Where there is none it has no right to, and the interval stays.
"""

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from random import Random
from typing import Protocol

from edgewright.agent.observation import OWN_SOURCE, Fetched, Observation
from edgewright.agent.timing import Clock
from edgewright.agent.transitions import Transitions
from edgewright.errors import EdgewrightError, Forbidden

SOURCES = (OWN_SOURCE, "helm-charts")
"""What the agent may ask for; see ``fetching-right.yaml``."""
AGAIN_SECONDS = 30.0
"""After which the same commit is asked for again, if it was not fetched."""
PROBE_SECONDS, PROBE_JITTER = 3600.0, 0.1
"""So long after the last request Flux is asked though nothing is wanted: one that is gone is noticed by nothing else.
An agent that has just started asks at any time within the first hour, for a whole fleet may have started with it."""
REFUSED_SECONDS, LONGEST_REFUSED = 10.0, 600.0
"""After which a right that was missing is tried again, at first and at last: the script grants it last of all."""

UNBOUNDED = (
    "The policy edgewright-fetching is not there, so this account may change more of Flux's sources than it should. "
    "A fresh bootstrap line brings it back."
)


class Asks(Protocol):
    """See ``kubernetes.Kubernetes``."""

    async def bounds_fetching(self) -> bool: ...

    async def ask_to_fetch(self, namespace: str, source: str, at: datetime) -> None: ...


class FluxFetching:
    """Asks Flux on one edge to fetch what the centre has committed.

    Args:
        namespace: of Flux's sources.
        hurry: is told the commit that is to come, whenever one was asked for.
    """

    def __init__(
        self,
        edge: Asks,
        *,
        namespace: str,
        clock: Clock,
        chance: Random,
        hurry: Callable[[str], None] = lambda _commit: None,
    ) -> None:
        self._edge = edge
        self._namespace = namespace
        self._clock = clock
        self._chance = chance
        self._hurry = hurry
        self._probe_at = clock.monotonic() + chance.uniform(0, PROBE_SECONDS)
        self._asked: dict[str, tuple[str, float]] = {}
        self._refused_until, self._refused_for = -math.inf, REFUSED_SECONDS
        self._refused_at: float | None = None
        self._has_worked = False
        self._matter = Transitions("fetching")

    @property
    def works(self) -> bool | None:
        """Whether Flux fetches when it is asked to; None: that is not known, or not for long enough."""
        if self._refused_at is None:
            return True if self._has_worked else None
        return False if self._clock.monotonic() - self._refused_at >= LONGEST_REFUSED else None

    async def heard(self, revisions: Mapping[str, str], seen: Observation) -> None:
        """Asks for what is wanted and was not fetched yet; else, seldom, whether Flux is there."""
        for name, commit in _lacking(revisions, seen):
            if self._is_due(name, commit):
                await self._ask(name, commit)
        await self._probe(next((each for each in seen.sources or () if each.name == OWN_SOURCE), None))

    def until_next_try(self, revisions: Mapping[str, str], seen: Observation) -> float | None:
        """Seconds until ``heard``, which was just called, may have more to do; None: everything is fetched."""
        if not _lacking(revisions, seen):
            return None
        now = self._clock.monotonic()
        return self._refused_until - now if self._refused_until > now else AGAIN_SECONDS

    async def _probe(self, source: Fetched | None) -> None:
        now = self._clock.monotonic()
        if (
            source is None
            or source.suspended
            or source.is_unanswered
            or now < max(self._probe_at, self._refused_until)
        ):
            return
        self._put_off_probe()
        await self._ask(OWN_SOURCE, None)

    def _put_off_probe(self) -> None:
        spread = self._chance.uniform(1 - PROBE_JITTER, 1 + PROBE_JITTER)
        self._probe_at = self._clock.monotonic() + PROBE_SECONDS * spread

    def _is_due(self, name: str, commit: str) -> bool:
        now = self._clock.monotonic()
        asked, at = self._asked.get(name, ("", -math.inf))
        return now >= self._refused_until and (asked != commit or now - at >= AGAIN_SECONDS)

    async def _ask(self, name: str, commit: str | None) -> None:
        now = self._clock.monotonic()
        try:
            if not await self._edge.bounds_fetching():
                self._refused_at = now if self._refused_at is None else self._refused_at
                self._matter.trouble("unbounded", detail=UNBOUNDED)
                return
            await self._edge.ask_to_fetch(self._namespace, name, self._clock.now())
        except Forbidden as trouble:
            self._refused_at = now if self._refused_at is None else self._refused_at
            self._refused_until = now + self._refused_for
            self._refused_for = min(2 * self._refused_for, LONGEST_REFUSED)
            self._matter.trouble("not_allowed", detail=trouble.detail, code=trouble.code)
            return
        except EdgewrightError as trouble:
            self._matter.trouble("not_asked", detail=trouble.detail, code=trouble.code)
            return
        self._refused_for, self._refused_at, self._has_worked = REFUSED_SECONDS, None, True
        self._matter.well("asked")
        if commit is None:
            return
        self._asked[name] = (commit, now)
        if name == OWN_SOURCE:
            self._put_off_probe()
        self._hurry(commit)


def _lacking(revisions: Mapping[str, str], seen: Observation) -> list[tuple[str, str]]:
    """Source and commit of what is wanted and was not fetched yet."""
    there = {source.name: source for source in seen.sources or ()}
    wanted = ((name, revisions[name]) for name in SOURCES if name in revisions and name in there)
    return [(name, commit) for name, commit in wanted if not _has(there[name], commit)]


def _has(source: Fetched, commit: str) -> bool:
    return source.fetched is not None and source.fetched.endswith(commit)
