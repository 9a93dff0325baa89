"""How much of what an edge reports the timeline takes: events are never deleted, so no edge may make them at will."""

from dataclasses import dataclass, replace
from datetime import datetime

BURST = 60.0
"""Events of an edge that was quiet for an hour."""
PER_SECOND = 1 / 60
"""What comes back."""
CERTIFICATE_COST = 10.0
"""Cost of another sealing certificate, in events: secrets are sealed anew for it, and somebody is told."""


@dataclass(frozen=True)
class EventRoom:
    """What the timeline takes of one edge now.

    Args:
        left: events.
        at: when that was so, by the database's clock; None: nothing was ever taken.
        omitted: events that there was no room for, and that no event has told of yet.
    """

    left: float = BURST
    at: datetime | None = None
    omitted: int = 0

    def refilled(self, now: datetime) -> "EventRoom":
        """The same at a later moment. A clock that was put back gives nothing and takes nothing."""
        gone = 0.0 if self.at is None else max(0.0, (now - self.at).total_seconds())
        return replace(self, left=min(BURST, self.left + gone * PER_SECOND), at=now)

    def has(self, cost: float) -> bool:
        """Whether there is room for so much."""
        return self.left >= cost

    def spent(self, cost: float) -> "EventRoom":
        """Less by so much."""
        return replace(self, left=self.left - cost)

    def seconds_until(self, cost: float) -> float:
        """After which there is room for so much; 0: there is now."""
        return max(0.0, cost - self.left) / PER_SECOND

    def with_omitted(self, number: int) -> "EventRoom":
        """One that has left out so many more."""
        return replace(self, omitted=self.omitted + number)

    def all_told(self) -> "EventRoom":
        """One whose omissions have been told."""
        return replace(self, omitted=0)
