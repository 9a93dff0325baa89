"""How late the event loops of gateway and worker were during a phase, by the metric that both export."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
from prometheus_client.parser import text_string_to_metric_families

from bench.running_centre import RunningCentre

METRIC = "edgewright_event_loop_lag_seconds"
HELD_SECONDS = 0.05
"""Nothing that one cluster asks for may hold a loop for longer; a class of the metric ends here."""


@dataclass(frozen=True)
class Ticks:
    """Looks at a loop, twenty a second: how many there were, and how many of them came late by ``HELD_SECONDS``."""

    all: int = 0
    late: int = 0

    def since(self, before: "Ticks") -> "Ticks":
        return Ticks(self.all - before.all, self.late - before.late)

    @property
    def share(self) -> float:
        """Of late ones, 0 to 1."""
        return self.late / self.all if self.all else 0.0


class LoopWatch:
    """The ticks of each loop while the block ran. Lag is wall time: a machine without a free core shows as well."""

    def __init__(self, centre: RunningCentre) -> None:
        self._centre = centre
        self._before: Mapping[str, Ticks] = {}
        self.ticks: dict[str, Ticks] = {}

    def __enter__(self) -> Self:
        self._before = _read(self._centre)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.ticks = {part: ticks.since(self._before[part]) for part, ticks in _read(self._centre).items()}


def _read(centre: RunningCentre) -> dict[str, Ticks]:
    worker = json.loads(Path(centre.home / "endpoints.json").read_text())["worker_metrics"]
    with httpx.Client(timeout=60, trust_env=False) as http:
        texts = {
            "gateway": http.get(f"{centre.url}/metrics", headers=centre.headers).raise_for_status().text,
            "worker": http.get(worker).raise_for_status().text,
        }
    return {part: _ticks(text) for part, text in texts.items()}


def _ticks(text: str) -> Ticks:
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    count = sum(sample.value for sample in samples if sample.name == f"{METRIC}_count")
    in_time = sum(
        sample.value
        for sample in samples
        if sample.name == f"{METRIC}_bucket" and float(sample.labels["le"]) == HELD_SECONDS
    )
    return Ticks(int(count), int(count - in_time))
