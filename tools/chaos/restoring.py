"""What has to hold once a copy of the stores was put back: what was answered before the copy was begun."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tools.chaos.journal import JournalLine

READINGS = frozenset({"observe", "read"})


@dataclass(frozen=True)
class Restore:
    """A copy that was put back; moments by the journal's clock.

    Args:
        begun: when its making was begun.
        made: when it was whole. Repositories are copied after the database, and may be ahead of it.
        at: when it was in its place, and nothing ran yet.
    """

    begun: float
    made: float
    at: float


def after_restores(lines: Sequence[JournalLine], restores: Sequence[Restore]) -> list[JournalLine]:
    """What the journal says of a centre that was restored so often, in this order."""
    for restore in restores:
        lines = [kept for line in lines if (kept := _after(line, restore)) is not None]
    return list(lines)


def _after(line: JournalLine, restore: Restore) -> JournalLine | None:
    if line.ended < restore.begun or line.began > restore.at:
        return line
    if line.began > restore.made or line.verb in READINGS:
        return None
    return replace(line, outcome="maybe")
