"""How late the event loops of gateway and worker were during a phase, and for how long a task held the worker's."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
from prometheus_client.parser import text_string_to_metric_families

from bench.running_centre import RunningCentre

LAG = "edgewright_event_loop_lag_seconds"
HELD = "edgewright_event_loop_held_seconds"
HELD_SECONDS = 0.05
"""Nothing that one cluster asks for may hold a loop for longer; a class of both metrics ends here."""
Classes = Mapping[float, float]
"""The classes of a histogram: at most so many seconds -> how often."""


@dataclass(frozen=True)
class Ticks:
    """Looks at a loop, twenty a second: how many there were, and how many of them came late by ``HELD_SECONDS``."""

    all: int = 0
    late: int = 0

    def since(self, before: "Ticks") -> "Ticks":
        return Ticks(self.all - before.all, self.late - before.late)

    @property
    def share(self) -> float:
        """The share of late ones, 0 to 1."""
        return self.late / self.all if self.all else 0.0


class LoopWatch:
    """Asks both processes before and after the block.

    Attributes:
        ticks: of each loop. Lag is wall time: a machine without a free core shows as well.
        held: for how long a task held the worker's loop at most, as the end of the metric's class; processor seconds.
    """

    def __init__(self, centre: RunningCentre) -> None:
        self._centre = centre
        self._before: Mapping[str, str] = {}
        self.ticks: dict[str, Ticks] = {}
        self.held = 0.0

    def __enter__(self) -> Self:
        self._before = _read(self._centre)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            after = _read(self._centre)
            lag = {part: (classes(self._before[part], LAG), classes(text, LAG)) for part, text in after.items()}
            self.ticks = {part: _ticks(now).since(_ticks(before)) for part, (before, now) in lag.items()}
            self.held = longest(classes(self._before["worker"], HELD), classes(after["worker"], HELD))


def classes(text: str, metric: str) -> Classes:
    """Reads the classes of a histogram from an exposition."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {float(each.labels["le"]): each.value for each in samples if each.name == f"{metric}_bucket"}


def longest(before: Classes, now: Classes) -> float:
    """The end of the highest class in which something was added; 0: nothing was.

    Raises:
        LookupError: there are no classes: the metric is not there.
    """
    if not now:
        raise LookupError("the worker does not tell how long its loop was held")
    added = {end: number - before.get(end, 0) for end, number in now.items()}
    return min(end for end, number in added.items() if number == added[math.inf]) if added[math.inf] else 0.0


def _read(centre: RunningCentre) -> dict[str, str]:
    worker = json.loads(Path(centre.home / "endpoints.json").read_text())["worker_metrics"]
    with httpx.Client(timeout=60, trust_env=False) as http:
        return {
            "gateway": http.get(f"{centre.url}/metrics", headers=centre.headers).raise_for_status().text,
            "worker": http.get(worker).raise_for_status().text,
        }


def _ticks(lag: Classes) -> Ticks:
    return Ticks(int(lag[math.inf]), int(lag[math.inf] - lag[HELD_SECONDS]))
