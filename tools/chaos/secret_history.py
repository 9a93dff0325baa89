"""What may stand at one place of a Secret in the end, from the requests that wrote there."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tools.chaos.evidence import Case
from tools.chaos.journal import JournalLine, Outcome


@dataclass(frozen=True)
class AttemptedWish:
    """All attempts of one request as one.

    Args:
        outcome: of the last attempt, but maybe if it was refused after an attempt that may have happened.
        last: the last attempt.
    """

    began: float
    ended: float
    outcome: Outcome
    last: JournalLine

    def overlaps(self, other: "AttemptedWish") -> bool:
        return self.began <= other.ended and other.began <= self.ended


@dataclass(frozen=True)
class Place:
    """What may be at a place.

    Args:
        values: None among them: nothing.
        missed: a lookup found nothing where something had to be; its wish.
        taken: a move to new hardware took a value away for sure, and nothing was entered since.
    """

    values: frozenset[str | None]
    missed: str = ""
    taken: bool = False


def wishes_of(lines: Iterable[JournalLine]) -> list[AttemptedWish]:
    """Attempts put together by their wish, in the order of their beginning."""
    by_wish: dict[str, list[JournalLine]] = {}
    for line in lines:
        by_wish.setdefault(line.wish, []).append(line)
    return sorted((_together(attempts) for attempts in by_wish.values()), key=lambda wish: wish.began)


def secret_wishes(case: Case) -> list[AttemptedWish]:
    return wishes_of(line for line in case.lines if line.verb == "secrets")


def moves(case: Case) -> list[AttemptedWish]:
    """Recreations for new hardware that have happened, or may have."""
    asked = (line for line in case.lines if line.verb == "recreate" and line.asked.get("new_hardware"))
    return [wish for wish in wishes_of(asked) if wish.outcome != "no"]


def places_of(case: Case) -> dict[str, Place]:
    """Every place that anybody wrote to."""
    changes: dict[str, list[tuple[AttemptedWish, str | None]]] = {}
    for wish in secret_wishes(case):
        for place, value in wish.last.asked["changes"]:
            changes.setdefault(place, []).append((wish, value))
    moved = moves(case)
    return {place: _follow(written, moved) for place, written in changes.items()}


def _follow(written: Sequence[tuple[AttemptedWish, str | None]], moved: Sequence[AttemptedWish]) -> Place:
    place = Place(frozenset({None}))
    pending: dict[str | None, AttemptedWish] = {}
    steps: list[tuple[float, AttemptedWish, str | None, bool]] = [(w.began, w, value, False) for w, value in written]
    steps += [(move.began, move, None, True) for move in moved]
    for _, wish, value, is_move in sorted(steps, key=lambda step: step[0]):
        if is_move:
            place = _move(place, wish, pending)
        else:
            pending[value] = wish
            place = _write(place, wish, value, any(wish.overlaps(move) for move in moved))
    return place


def _write(place: Place, wish: AttemptedWish, value: str | None, during_move: bool) -> Place:
    if wish.outcome == "no":
        found_nothing = wish.last.code == "secret_unknown" and value is None and len(wish.last.asked["changes"]) == 1
        missed = found_nothing and not during_move and None not in place.values
        return Place(place.values, place.missed or (wish.last.wish if missed else ""), place.taken)
    if wish.outcome == "yes" and not during_move:
        return Place(frozenset({value}), place.missed)
    if wish.outcome == "yes":
        return Place(frozenset({value, None}), place.missed)
    return Place(place.values | {value}, place.missed)


def _move(place: Place, move: AttemptedWish, pending: dict[str | None, AttemptedWish]) -> Place:
    if move.outcome != "yes":
        return Place(place.values | {None}, place.missed)
    open_ = {value for value in place.values if value is not None and pending[value].overlaps(move)}
    sure = place.taken or (None not in place.values and not open_)
    return Place(frozenset({None, *open_}), place.missed, taken=sure and not open_)


def _together(attempts: Sequence[JournalLine]) -> AttemptedWish:
    last = max(attempts, key=lambda line: line.began)
    doubtful = last.outcome == "no" and any(line.outcome == "maybe" for line in attempts)
    began, ended = min(line.began for line in attempts), max(line.ended for line in attempts)
    return AttemptedWish(began, ended, "maybe" if doubtful else last.outcome, last)
