"""Where the seconds go between the PUT of a secret and the Kubernetes Secret: what the API server shows, and when."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import httpx

LEGS = ("committed", "asked", "fetched", "applied", "opened")
"""Committed: the PUT is answered. Asked: the agent has heard and asks Flux. Fetched: by the source-controller.
Applied: the SealedSecret is there. Opened: so is the Secret."""
_SOURCES = "/apis/source.toolkit.fluxcd.io/v1/namespaces/edgewright/gitrepositories"
_SEALED = "/apis/bitnami.com/v1alpha1/namespaces/default/sealedsecrets"
_SECRETS = "/api/v1/namespaces/default/secrets"
_ASKED = "reconcile.fluxcd.io/requestedAt"
_HOUR = {"watch": "1", "timeoutSeconds": "3600"}


@dataclass
class Sightings:
    """When something was seen for the first time, by the performance counter."""

    times: dict[tuple[str, str], float] = field(default_factory=dict)

    def note(self, leg: str, what: str | None) -> None:
        if what is not None:
            self.times.setdefault((leg, what), time.perf_counter())

    def of(self, leg: str, name: str) -> float:
        """When this leg of one object began, by ``time.perf_counter``."""
        return self.times[leg, name]

    def first(self, leg: str, after: float) -> float | None:
        """The first of any; None: there was none."""
        return min((at for (kind, _), at in self.times.items() if kind == leg and at >= after), default=None)

    def legs(self, name: str, begun: float, answered: float) -> list[float] | None:
        """Seconds of each leg of a secret; None: the API server has shown too little, or in another order.

        Args:
            begun, answered: the PUT.
        """
        asked = self.first("asked", answered)
        fetched = self.first("fetched", answered if asked is None else asked)
        if asked is None or fetched is None or ("opened", name) not in self.times:
            return None
        ends = [begun, answered, asked, fetched, self.of("applied", name), self.of("opened", name)]
        return [late - early for early, late in pairwise(ends)] if ends == sorted(ends) else None


def watch_deliveries(http: httpx.Client) -> Sightings:
    """Begins to watch; that ends with the API server, or after an hour."""
    seen = Sightings()

    def of_source(source: dict[str, Any]) -> None:
        if source["metadata"]["name"] == "self-link":
            seen.note("asked", source["metadata"].get("annotations", {}).get(_ASKED))
            seen.note("fetched", source.get("status", {}).get("artifact", {}).get("revision"))

    for path, look in (
        (_SOURCES, of_source),
        (_SEALED, lambda sealed: seen.note("applied", sealed["metadata"]["name"])),
        (_SECRETS, lambda secret: seen.note("opened", secret["metadata"]["name"])),
    ):
        threading.Thread(target=_follow, args=(http, path, look), daemon=True).start()
    return seen


def _follow(http: httpx.Client, path: str, look: Callable[[dict[str, Any]], None]) -> None:
    with suppress(httpx.HTTPError, httpx.StreamError), http.stream("GET", path, params=_HOUR, timeout=None) as answer:
        for line in answer.iter_lines():
            look(json.loads(line)["object"])


def by_leg(deliveries: Sequence[Sequence[float]]) -> Iterator[tuple[str, list[float]]]:
    """The seconds of each leg, of all deliveries."""
    yield from zip(LEGS, map(list, zip(*deliveries, strict=True)), strict=True)
