"""Whole hours and a day of an agent, against a centre over real HTTP and with a clock that runs at once."""

from collections.abc import Callable, Mapping
from datetime import datetime
from random import Random
from typing import Any

import pytest
from scripted_centre import QuickClock, ScriptedCentre, TimeIsUp
from structlog.testing import capture_logs

from edgewright.agent.attachment import Attachment
from edgewright.agent.centre import Centre
from edgewright.agent.fetching import FluxFetching
from edgewright.agent.leaving import Leaving
from edgewright.agent.moving import Moving
from edgewright.agent.observation import Fetched, Host, Kustomized, Observation, Released
from edgewright.agent.opening import Opening
from edgewright.agent.passwords import HeldSecret
from edgewright.agent.reporter import Reporter
from edgewright.agent.rotation import Rotation
from edgewright.agent.watch import Watch
from edgewright.errors import Waiting

HOUR, DAY = 3600.0, 86400.0
WHOLE = Observation(
    hosts=(Host("press-1", True, True),),
    sources=(Fetched("self-link", fetched="main@sha1:a"),),
    kustomizations=(Kustomized("self-link", "self-link", applied="main@sha1:a"),),
    revision="main@sha1:a",
    certificate="PEM",
    versions={"agent": "1"},
)


class UnreadableEdge:
    """Sees nothing: what was seen is set by the test."""

    async def namespaces(self, *, most: int) -> list[str]:
        return ["default"][:most]

    async def hosts(self) -> list[Host]:
        raise Waiting("The test says what is seen.")

    async def kustomizations(self, namespace: str, cluster: str) -> list[Kustomized]:
        raise Waiting("The test says what is seen.")

    async def openings(self) -> list[Opening]:
        raise Waiting("The test says what is seen.")

    async def releases(self, namespace: str, cluster: str) -> list[Released]:
        raise Waiting("The test says what is seen.")

    async def sources(self, namespace: str, cluster: str) -> list[Fetched]:
        raise Waiting("The test says what is seen.")

    async def version(self) -> str:
        raise Waiting("The test says what is seen.")

    async def held_secret(self, namespace: str, name: str) -> HeldSecret | None:
        raise Waiting("The test says what is seen.")

    async def may_change_secret(self, namespace: str, name: str) -> bool:
        raise Waiting("The test says what is seen.")

    async def document(self, path: str, accept: str, *, where: str) -> Mapping[str, Any] | None:
        raise Waiting("Nothing is applied.")


class NoSecrets:
    """An edge whose Secrets cannot be had; what is done with them is in ``test_rotation``."""

    async def held_secret(self, namespace: str, name: str) -> HeldSecret | None:
        return None

    async def change_secret(
        self, namespace: str, name: str, version: str, data: Mapping[str, str | None]
    ) -> HeldSecret:
        raise AssertionError("there is none")


class AgentLife:
    """One agent's life.

    Args:
        lasts: seconds.
    """

    def __init__(
        self, centre: ScriptedCentre, lasts: float, seen: Observation = WHOLE, chance: Random | None = None
    ) -> None:
        self.asked_for: list[tuple[str, str]] = []
        self.expected: list[str] = []
        self.attached: Attachment | None = Attachment("u", "ewa_secret", centre.url, "cluster", 1)
        self.clock = QuickClock(lasts, self._each_sleep)
        self.each_sleep: Callable[[], object] = lambda: None
        chance = chance or Random(7)
        self.watch = Watch(
            UnreadableEdge(),
            self._no_certificate,
            namespace="edgewright",
            cluster="cluster",
            look_seconds=15,
            clock=self.clock,
            chance=chance,
        )
        self.watch.seen = seen
        assert self.attached
        self._reporter = Reporter(
            Centre(self.attached),
            self.watch,
            attachment=self._attachment,
            connect=Centre,
            rotation=Rotation(NoSecrets(), namespace="edgewright"),
            leaving=Leaving(self, namespace="edgewright"),
            moving=Moving(NoSecrets(), namespace="edgewright", clock=self.clock),
            fetching=FluxFetching(
                self, namespace="edgewright", clock=self.clock, chance=chance, hurry=self.expected.append
            ),
            clock=self.clock,
            chance=chance,
            reseal=lambda secrets, _centre: self.resealed.append(tuple(secrets)),
            answered=lambda: self.answered.append(len(centre.beats)),
        )
        self.resealed: list[tuple[str, ...]] = []
        self.answered: list[int] = []
        """How many heartbeats there were by each answer."""
        self.scaled: list[tuple[str, str, int]] = []

    async def scale(self, namespace: str, name: str, replicas: int) -> None:
        self.scaled.append((namespace, name, replicas))

    async def bounds_fetching(self) -> bool:
        return True

    async def ask_to_fetch(self, namespace: str, source: str, at: datetime) -> None:
        self.asked_for.append((namespace, source))

    async def live(self) -> list[dict[str, Any]]:
        """Returns what was logged."""
        with capture_logs() as logged, pytest.raises(TimeIsUp):
            await self._reporter.run()
        return [dict(line) for line in logged]

    async def end_by(self, kind: type[Exception]) -> Any:
        with pytest.raises(kind) as ended:
            await self._reporter.run()
        return ended.value

    def see(self, seen: Observation) -> None:
        if seen != self.watch.seen:
            self.watch.seen = seen
            self.watch.news.set()

    def _each_sleep(self) -> None:
        self.each_sleep()

    async def _attachment(self) -> Attachment | None:
        return self.attached

    async def _no_certificate(self) -> str:
        raise Waiting("The test says what is seen.")


def states(logged: list[dict[str, Any]], matter: str = "centre") -> list[str]:
    return [line["state"] for line in logged if line["event"] == matter]
