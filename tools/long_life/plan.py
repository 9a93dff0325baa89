"""How long a life is, and what happens how often in it."""

from dataclasses import dataclass

from workflows import policies


@dataclass(frozen=True)
class Rhythm:
    """Every how many weeks something happens; what is missing happens each week."""

    config: int = 2
    lapse: int = 2
    pause: int = 4
    certificate: int = 4
    template: int = 13
    rotation: int = 13
    removal: int = 26
    recreation: int = 52
    new_hardware: int = 156


@dataclass(frozen=True)
class LongLifePlan:
    """What a life is to be.

    Args:
        secrets: written each week, some of them at the same time.
        upgrades: years that begin with another version of the renderer, and so with another worker.
        history_limit: events after which a run continues as new; None: the product's own.
        sweep_seconds: between two sweeps; 30 in the product.
        upkeep_slots: a repository is kept in shape by one in so many sweeps; 120 in the product.
        loose_limit: loose objects that are worth a repack; 1,000 in the product.
    """

    years: int
    weeks: int = 52
    secrets: int = 7
    rhythm: Rhythm = Rhythm()
    upgrades: frozenset[int] = frozenset()
    history_limit: int | None = None
    sweep_seconds: float = 2.0
    upkeep_slots: int = 12
    loose_limit: int = 1000

    @property
    def longest_run(self) -> int:
        """Events that no run may exceed: the limit, and what one step, one commit and the end of a run may add."""
        return (self.history_limit or policies.HISTORY_LIMIT) + SLACK


SLACK = 150
"""A run goes on until the step or commit under way has ended and everybody inside is answered."""


def long_form(years: int) -> LongLifePlan:
    """Years of 52 weeks on the product's own limits."""
    return LongLifePlan(
        years=years, upgrades=frozenset({years * 4 // 10 + 1, years * 8 // 10 + 1}) if years > 1 else frozenset()
    )


SHORT_FORM = LongLifePlan(
    years=2,
    weeks=4,
    secrets=3,
    rhythm=Rhythm(pause=3, certificate=3, template=4, rotation=4, removal=5, recreation=6, new_hardware=7),
    upgrades=frozenset({2}),
    history_limit=100,
    sweep_seconds=1.0,
    upkeep_slots=2,
    loose_limit=15,
)
"""The same in less than a minute: fewer weeks, shorter runs, repositories that are repacked sooner.

Upkeep looks for loose objects in a sixteenth of the folders. With some 130 in a life, the first it finds must do.
"""
