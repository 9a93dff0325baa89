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
TURNS = 5
STARTS = 3


class ImportCost(NamedTuple):
    """Processor seconds, and megabytes held at the end."""

    worked: float
    held: float


class StartSide(NamedTuple):
    """One version: what each program's imports cost, the best of all turns, and the quickest start."""

    imports: dict[str, ImportCost]
    started: float


def start_lines(beside: Path | None) -> Iterator[TableLine]:
    """``beside``: the files of another version; None: only this one is measured."""
    sides = [Path.cwd(), *([beside] if beside is not None else [])]
    here, *others = _measured(sides)
    for program, cost in here.imports.items():
        there = [other.imports[program] for other in others]
        worked = [other.worked for other in there]
        yield _line(f"imports of the {program}, processor time", ms(cost.worked), cost.worked, worked, beside)
        held = [other.held for other in there]
        yield _line(f"imports of the {program}, memory", f"{cost.held:.0f} MB", cost.held, held, beside)
    started = [other.started for other in others]
    yield _line("`edgewright up`, a home that is there", seconds(here.started), here.started, started, beside)


def _line(measure: str, figure: str, here: float, there: list[float], beside: Path | None) -> TableLine:
    """The ratio is that of the other version to this one: more than 1 is better."""
    if not there or beside is None:
        return TableLine(measure, figure, "-", "-")
    return TableLine(measure, f"{figure}; ratio {there[0] / here:.2f}", f"({beside.name})", "no slower, no larger")


def _measured(sides: list[Path]) -> list[StartSide]:
    costs: list[dict[str, list[ImportCost]]] = [{program: [] for program in IMPORTS} for _ in sides]
    for _ in range(TURNS):
        for program, statement in IMPORTS.items():
            for side, of_side in zip(sides, costs, strict=True):
                of_side[program].append(_imported(side, statement))
    starts = [_started(side) for side in sides]
    best = [{program: ImportCost(*map(min, zip(*each, strict=True))) for program, each in of.items()} for of in costs]
    return [StartSide(imports, started) for imports, started in zip(best, starts, strict=True)]


def _imported(code: Path, statement: str) -> ImportCost:
    """By a fresh process, which has its modules compiled already from the second turn on."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", statement], cwd=code, env=os.environ | {"PYTHONPATH": str(code)}
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"`{statement}` failed in {code}")
    return ImportCost(used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6)


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
