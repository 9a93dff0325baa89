"""Limits the events from one edge: events are never deleted, so no edge may create unlimited numbers of them."""

from dataclasses import dataclass, replace
from datetime import datetime

BURST = 60.0
"""Events that an edge may cause after a quiet hour."""
PER_SECOND = 1 / 60
"""The rate at which the allowance refills."""
CERTIFICATE_COST = 10.0
"""Cost of a new sealing certificate, in events: secrets are re-sealed for it, and a notification is sent."""


@dataclass(frozen=True)
class EventRoom:
    """The present allowance of one edge.

    Args:
        left: remaining events.
        at: when that was the allowance, by the database's clock; None: it was never used.
        omitted: events that were left out, and that no event has reported yet.
    """

    left: float = BURST
    at: datetime | None = None
    omitted: int = 0

    def refilled(self, now: datetime) -> "EventRoom":
        """Returns the allowance at a later time. A clock that was set back changes nothing."""
        gone = 0.0 if self.at is None else max(0.0, (now - self.at).total_seconds())
        return replace(self, left=min(BURST, self.left + gone * PER_SECOND), at=now)

    def has(self, cost: float) -> bool:
        """Whether the allowance covers this cost."""
        return self.left >= cost

    def spent(self, cost: float) -> "EventRoom":
        """Returns the allowance minus this cost."""
        return replace(self, left=self.left - cost)

    def seconds_until(self, cost: float) -> float:
        """Returns after how many seconds the allowance covers this cost; 0: it does now."""
        return max(0.0, cost - self.left) / PER_SECOND

    def with_omitted(self, number: int) -> "EventRoom":
        """Returns the allowance with more events left out."""
        return replace(self, omitted=self.omitted + number)

    def all_told(self) -> "EventRoom":
        """Returns the allowance once the omissions are reported."""
        return replace(self, omitted=0)
