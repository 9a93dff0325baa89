"""Whom the sweep reminds of a step that it has published and not finished."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

FIRST_REMINDER = 5.0
LONGEST_PAUSE = 300.0
MOST_REMINDERS = 1000
"""At each sweep."""


@dataclass
class _WaitingStep:
    """``since``, ``next_at``: seconds of a clock that only goes forward."""

    since: float
    next_at: float


class Reminders:
    """Remembers who waits, and reminds each at growing intervals: most of them know, and wait for something else.

    A workflow that does not know was put back, with Temporal's database, to before it took what is wanted: the row
    says that it was taken, so nothing else would wake it. Seconds after it was taken that is noticed within seconds,
    and hours after it within ``LONGEST_PAUSE``.
    """

    def __init__(self) -> None:
        self._waiting: dict[UUID, _WaitingStep] = {}

    def due(self, waiting: Collection[UUID], now: float) -> list[UUID]:
        """Of those that wait now, who is to be reminded now."""
        known = self._waiting
        self._waiting = {each: known.get(each) or _WaitingStep(now, now + FIRST_REMINDER) for each in waiting}
        due = [cluster for cluster, each in self._waiting.items() if each.next_at <= now][:MOST_REMINDERS]
        for cluster in due:
            each = self._waiting[cluster]
            each.next_at = now + min(LONGEST_PAUSE, now - each.since)
        return due
