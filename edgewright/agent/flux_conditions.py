"""The conditions that Flux states of its objects, and what the agent reports of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

LONGEST_PROGRESS = timedelta(minutes=5)
"""So long Flux may be at work before that is news; at each interval it is, for a moment."""
LONGEST_MESSAGE = 1000
"""Characters of what Flux says."""


@dataclass(frozen=True, slots=True)
class FluxCondition:
    """A condition as Flux states it. ``since``: aware; not reported, for it moves when nothing else does."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    since: datetime | None = None

    def to_json(self) -> dict[str, str]:
        """As it is reported."""
        return {
            "type": self.type,
            "status": self.status,
            "reason": self.reason,
            "message": self.message[:LONGEST_MESSAGE],
        }


def is_progressing(conditions: Sequence[FluxCondition]) -> bool:
    """Whether Flux is at work, and says nothing else for that time."""
    return any(each.type == "Ready" and each.status == "Unknown" for each in conditions)
