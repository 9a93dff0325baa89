"""How long tests of a whole edge wait: as long as a machine may take that has more to do."""

from collections.abc import Callable

import supervised

PATIENCE = 240.0


def eventually(condition: Callable[[], object], *, seconds: float = PATIENCE) -> None:
    """Returns when a condition holds; fails the test if it does not in time."""
    supervised.eventually(condition, seconds=seconds)
