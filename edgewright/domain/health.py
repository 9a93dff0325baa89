"""The health of an edge as one verdict: the first finding in a fixed order, and a count of the others.

Each check yields ``Finding`` objects; ``edge_health`` decides which one comes first.
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
"""Reasons of *Synced*: the agent lacks a right to see the state, or what delivers commits is missing, or does not
answer."""
MOST_NAMED = 3
"""How many further findings are named; the rest are counted."""
_LONGEST_NAME = 100


class About(StrEnum):
    """What a finding is about, by priority: what holds up the rest comes first."""

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
        name: name of the object on the edge.
        own: it belongs to the centre; otherwise to the operator.
        reason: reason of the condition *Healthy* if this finding comes first.
        sentence: names the object, and says what is wrong with it; its creator limits its length.
    """

    about: About
    name: str
    own: bool
    reason: str
    sentence: str


def edge_health(findings: Iterable[Finding]) -> EdgeHealth:
    """Returns the verdict. The centre's objects come before the operator's, sorted by ``About`` and name."""
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
