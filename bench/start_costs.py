"""What a start costs: processor time and memory of each program's imports, and `edgewright up` on a home it knows.

With another version's files beside, both sides are measured in turns, in one run.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.lines import TableLine, ms, seconds
from bench.running_centre import running_centre

IMPORTS = {"gateway": "import api.__main__", "worker": "import worker", "command": "import edgewright.cli.main"}
TELL = """
import time
print(time.process_time(), open("/proc/self/statm").read().split()[1])
"""
"""Processor seconds, and resident pages."""
TURNS = 5
STARTS = 3


class ImportCost(NamedTuple):
    """Processor seconds, and megabytes held at the end."""

    worked: float
    held: float


def start_lines(beside: Path | None) -> Iterator[TableLine]:
    """``beside``: another version's files, which have to run with the libraries of this one; None: it is alone."""
    sides = [Path.cwd(), *([beside] if beside is not None else [])]
    here, *others = _import_costs(sides)
    for program, cost in here.items():
        there = [other[program] for other in others]
        worked = [other.worked for other in there]
        yield _line(f"imports of the {program}, processor time", ms(cost.worked), cost.worked, worked, beside)
        held = [other.held for other in there]
        yield _line(f"imports of the {program}, memory", f"{cost.held:.0f} MB", cost.held, held, beside)
    started, *started_there = [_started(side) for side in sides]
    yield _line("`edgewright up`, a home that is there", seconds(started), started, started_there, beside)


def _line(measure: str, figure: str, here: float, there: list[float], beside: Path | None) -> TableLine:
    """The ratio is that of the other version to this one: more than 1 is better."""
    if not there or beside is None:
        return TableLine(measure, figure, "-", "-")
    return TableLine(measure, f"{figure}; ratio {there[0] / here:.2f}", f"({beside.name})", "no slower, no larger")


def _import_costs(sides: list[Path]) -> list[dict[str, ImportCost]]:
    """The best of all turns, for each version."""
    costs: list[dict[str, list[ImportCost]]] = [{program: [] for program in IMPORTS} for _ in sides]
    for _ in range(TURNS):
        for program, statement in IMPORTS.items():
            for side, of_side in zip(sides, costs, strict=True):
                of_side[program].append(_imported(side, statement))
    return [{program: ImportCost(*map(min, zip(*each, strict=True))) for program, each in of.items()} for of in costs]


def _imported(code: Path, statement: str) -> ImportCost:
    """By a fresh process, which has its modules compiled already from the second turn on.

    It tells of itself: what the system tells of a process that has ended counts the memory of who started it, too.
    """
    told = subprocess.run(
        [sys.executable, "-P", "-c", f"{statement}\n{TELL}"],
        cwd=code,
        env=os.environ | {"PYTHONPATH": str(code)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    worked, pages = map(float, told.split())
    return ImportCost(worked, pages * os.sysconf("SC_PAGE_SIZE") / 1e6)


def _started(code: Path) -> float:
    """Seconds of the clock until gateway, worker and Temporal serve; the best of some starts of one home."""
    taken = []
    with running_centre(code) as centre:
        for _ in range(STARTS):
            centre.stop()
            began = time.perf_counter()
            centre.start()
            taken.append(time.perf_counter() - began)
    return min(taken)
