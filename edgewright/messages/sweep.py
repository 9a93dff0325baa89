"""Messages of the sweep. Additive only."""

from edgewright.domain.cluster import Frozen


class SweepResult(Frozen):
    """How many of each a part of the sweep found."""

    leases: int = 0
    tokens: int = 0
    nudged: int = 0
    restarted: int = 0
    begun_anew: int = 0
    kept: int = 0
    forgotten: int = 0
