"""What is wrong on an edge, as one verdict: the first finding in a fixed order, and how many stand behind it.

Whoever learns of something wrong adds a ``Finding``; ``edge_health`` decides which one is told first.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from edgewright.domain.cluster import EdgeHealth

HEALTHY = "Healthy"
"""Reason of a verdict without a finding."""
CANNOT_BE_KNOWN: Final = "CannotBeKnown"
DRIVER_MISSING: Final = "DriverMissing"
FLUX_SILENT: Final = "FluxSilent"
"""Reasons of *Synced*: the agent may not see what would tell, or what delivers a commit is not there, or does not
answer."""
MOST_NAMED = 3
"""So many further findings are called by name; more are counted."""
_LONGEST_NAME = 100


class About(StrEnum):
    """What a finding is about, in the order of telling: what holds up the rest comes first."""

    MISSING = "missing"
    SILENT = "Flux's"
    RIGHT = "right on"
    SOURCE = "source"
    KUSTOMIZATION = "Kustomization"
    RELEASE = "release"
    SECRET = "secret"  # noqa: S105 - what a finding is about
    VALUE = "value"


_ORDER = {about: place for place, about in enumerate(About)}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong on an edge.

    Args:
        name: of the object, as the edge has it.
        own: the centre has put it there; else it is the operator's.
        reason: of the condition *Healthy* when this is told first.
        sentence: names the object and says what is wrong with it; bounded by whoever makes it.
    """

    about: About
    name: str
    own: bool
    reason: str
    sentence: str


def edge_health(findings: Iterable[Finding]) -> EdgeHealth:
    """The verdict. The centre's own objects come before the operator's, then the order of ``About`` and names."""
    ordered = sorted(findings, key=lambda each: (not each.own, _ORDER[each.about], each.name))
    if not ordered:
        return EdgeHealth(reason=HEALTHY)
    first, *others = ordered
    return EdgeHealth(reason=first.reason, message=f"{_ended(first.sentence)}{_others(others)}")


def _others(others: list[Finding]) -> str:
    if not others:
        return ""
    named = ", ".join(f"{each.about} {each.name[:_LONGEST_NAME]}" for each in others[:MOST_NAMED])
    left = len(others) - MOST_NAMED
    return f" Also failing: {named}{f' and {left} more' if left > 0 else ''}."


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."
