"""What has to hold after a life, however long it was."""

from collections import Counter
from collections.abc import Iterator

from tools.long_life.growth import GROWING, Year
from tools.long_life.run import Lived

LARGEST_HANDOVER = 32 * 1024
"""Bytes that one run may give to the next one."""
HANDOVER_GROWTH = 1.25
"""How much larger the largest of the second half of a life may be than that of the first: sentences differ."""
ONE_PLAN = 1024
"""Bytes: the steps of a recreation are handed over, or not, as the run ends in its midst, or not. In a short life
this is a quarter of all."""
MEMORY_GROWTH = 30.0
"""Megabytes that a worker may hold more at the end of its time than after its first year."""
FRESH_OBJECTS = 1000
"""Loose objects that may be written between two rounds of upkeep."""
MOST_PACKS = 21


def broken(lived: Lived) -> list[str]:
    """The promises that do not hold, one sentence each."""
    return [*_timeline(lived), *_commits(lived), *_runs(lived), *_rows(lived), *_repository(lived), *_memory(lived)]


def _timeline(lived: Lived) -> Iterator[str]:
    yield from (f"timeline: {difference}" for difference in lived.ledger.differences(lived.timeline))
    for event, count in Counter(event.id for event in lived.timeline).items():
        if count > 1:
            yield f"timeline: event {event} stands there {count} times"


def _commits(lived: Lived) -> Iterator[str]:
    """Every commit is told of, and every commit that is told of is there."""
    told = {str(event.detail["commit"]) for event in lived.timeline if event.detail.get("commit")}
    yield from (f"commits: {commit} is not told of" for commit in lived.commits - told)
    yield from (f"commits: {commit} is told of and lost" for commit in told - lived.commits)


def _runs(lived: Lived) -> Iterator[str]:
    for run in lived.runs:
        if run.events > lived.plan.longest_run:
            yield f"history: run {run.run_id} has {run.events} events"
        if run.handover > LARGEST_HANDOVER:
            yield f"history: run {run.run_id} gives {run.handover} bytes to the next one"
    half = len(lived.runs) // 2
    first, second = (
        max((run.handover for run in part), default=0) for part in (lived.runs[:half], lived.runs[half:])
    )
    if half and second > first * HANDOVER_GROWTH + ONE_PLAN:
        yield f"history: what runs hand over has grown from {first} to {second} bytes"


def _rows(lived: Lived) -> Iterator[str]:
    first, last = lived.years[0].rows, lived.years[-1].rows
    for table in sorted(last.keys() - GROWING):
        if last[table] > first.get(table, 0):
            yield f"rows: {table} has grown from {first.get(table, 0)} to {last[table]}"


def _repository(lived: Lived) -> Iterator[str]:
    last = lived.years[-1].repository
    if not last.packs:
        yield "repository: never repacked"
    if last.packs > MOST_PACKS or last.loose > lived.plan.loose_limit + FRESH_OBJECTS:
        yield f"repository: {last.packs} packs and {last.loose} loose objects"


def _memory(lived: Lived) -> Iterator[str]:
    """Checks the memory of each worker by itself."""
    for years in _workers(lived):
        if years[-1].worker > years[0].worker + MEMORY_GROWTH:
            yield f"memory: the worker has grown from {years[0].worker:.0f} to {years[-1].worker:.0f} MB"


def _workers(lived: Lived) -> Iterator[list[Year]]:
    """Years by the worker that they ended with."""
    begun = sorted({1, *lived.plan.upgrades})
    for start, end in zip(begun, [*begun[1:], lived.plan.years + 1], strict=True):
        yield [year for year in lived.years if start <= year.number < end]
