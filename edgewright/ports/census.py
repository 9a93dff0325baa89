"""The fleet in numbers, for monitoring: no names, no UUIDs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from edgewright.domain.cluster import LeaseState, Phase, StepName, StepState

LEASE_AGES = (30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 21600.0, 86400.0)
"""Upper bounds of the buckets of lease ages, in seconds; a last bucket holds everything older."""


@dataclass(frozen=True)
class Counted:
    """The result of one reading, without deleted clusters.

    Args:
        phases: clusters by phase; phases without clusters are left out.
        failing: clusters by (WAITING or BLOCKED, the step that fails; None: a template).
        leases: clusters by the state of their lease.
        lease_ages: for each bound of ``LEASE_AGES``, clusters whose last heartbeat is at most that old (cumulative).
        heard: clusters with at least one heartbeat.
        oldest_commissioning: seconds since the creation of the oldest cluster that never was ready; 0 without one.
        staged: sealed values that no commit holds yet.
        oldest_staged: seconds since the oldest of them was sealed; 0 without one.
        notifications: notifications that the webhook has not accepted yet.
        oldest_notification: seconds since the oldest of them began to wait; 0 without one.
        resealings: clusters whose secrets are being re-sealed.
        oldest_resealing: seconds since the first of these was requested; 0 without one.
        sweep_age: seconds for which no round of the sweep has ended while a gateway was listening.
        drifted: clusters whose repository or database was put back, and that still miss some of what was lost.
    """

    phases: Mapping[Phase, int] = field(default_factory=dict)
    failing: Mapping[tuple[StepState, StepName | None], int] = field(default_factory=dict)
    leases: Mapping[LeaseState, int] = field(default_factory=dict)
    lease_ages: tuple[int, ...] = (0,) * len(LEASE_AGES)
    heard: int = 0
    oldest_commissioning: float = 0.0
    staged: int = 0
    oldest_staged: float = 0.0
    notifications: int = 0
    oldest_notification: float = 0.0
    resealings: int = 0
    oldest_resealing: float = 0.0
    sweep_age: float = 0.0
    drifted: int = 0


class Census(Protocol):
    async def count(self) -> Counted:
        """Takes one consistent reading, in a few queries regardless of the size of the fleet.

        Raises:
            edgewright.errors.Waiting: the database is out of reach.
        """
