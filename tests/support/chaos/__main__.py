"""`make chaos`: a long run, what came of it, and the verdict of the checker."""

import argparse
import asyncio
import secrets
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from chaos.checker import check
from chaos.journal import read_lines
from chaos.run import Plan, Ran, run


def main() -> int:
    """0: every answered request holds; 1: some do not, and the folder of the run stays."""
    plan = _plan()
    folder = Path(tempfile.mkdtemp(prefix=f"edgewright-chaos-{plan.seed}-"))
    _say(f"chaos, seed {plan.seed}: {plan.kills} kills; in {folder}")
    ran = asyncio.run(run(folder, plan))
    for line in report(ran):
        _say(line)
    broken = [*(f"not settled: {left}" for left in ran.left), *map(str, check(ran.home, ran.journal, ran.keys))]
    for line in broken:
        _say(line)
    if broken:
        _say(f"{len(broken)} promises are broken (seed {plan.seed}); stores and journal stay in {folder}")
        return 1
    _say(f"every answered request holds (seed {plan.seed})")
    shutil.rmtree(folder)
    return 0


def report(ran: Ran) -> Iterator[str]:
    """What happened, one line each."""
    killed = ", ".join(f"{part} {count}" for part, count in sorted(ran.kills.items()))
    yield f"{sum(ran.kills.values())} kills ({killed}) in {ran.seconds:.0f} s"
    yield f"Temporal's file put back {ran.put_back} times"
    lines = read_lines(ran.journal)
    yield f"{len(lines)} answers and missing answers about {len({line.cluster for line in lines} - {''})} clusters"
    for verb, of_verb in sorted(_by_verb(ran).items()):
        yield f"  {verb:<10} yes {of_verb['yes']:>6}  no {of_verb['no']:>5}  maybe {of_verb['maybe']:>5}"


def _by_verb(ran: Ran) -> dict[str, Counter[str]]:
    counted: dict[str, Counter[str]] = {}
    for line in read_lines(ran.journal):
        counted.setdefault(line.verb, Counter())[line.outcome] += 1
    return counted


def _plan() -> Plan:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="processes to kill")
    parser.add_argument("--seed", type=int, default=None, help="what the wishes and the kills follow from")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no kill is begun later")
    given = parser.parse_args()
    seed = secrets.randbelow(1_000_000) if given.seed is None else given.seed
    return Plan(seed=seed, kills=given.kills, seconds=given.seconds, patience=400.0)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
