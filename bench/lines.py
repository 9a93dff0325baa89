"""Lines of the table, and how they are worded."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TableLine:
    """One measure. ``before``: the system before, as it was measured on a machine of the same size."""

    measure: str
    figure: str
    before: str
    goal: str


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def seconds(taken: float) -> str:
    return f"{taken:.1f} s"


def rate(answers: Mapping[str, Any]) -> str:
    """What ``agent_load`` tells of one kind of request."""
    failed = ", ".join(f"{number} {code}" for code, number in answers["failed"].items()) or "none"
    times = f"p50 {ms(answers['p50'])}, p99 {ms(answers['p99'])}, slowest {ms(answers['slowest'])}"
    return f"{answers['per_second']:.1f}/s, {times}, failed: {failed}"
