"""`make chaos`: a long run, what came of it, and the verdict of the checker."""

import argparse
import asyncio
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.chaos.centre import ChaosCentre
from tools.chaos.embedded_centre import EmbeddedCentre
from tools.chaos.production_centre import ChaosProductionCentre
from tools.chaos.run import ChaosPlan, run
from tools.chaos.verdict import broken_promises, report

TOPOLOGIES = {"embedded": 1.0, "production": 1.5}
"""Topology -> mean seconds between two kills; what has to find PostgreSQL and Temporal first comes back later."""


def main() -> int:
    """0: every answered request holds; 1: some do not, and the folder of the run stays."""
    given = _given()
    if given.centres > 1:
        return _side_by_side(given)
    pace = TOPOLOGIES[given.topology]
    plan = ChaosPlan(
        seed=given.seed, kills=given.kills, pace=pace, seconds=given.seconds, patience=_patience(given.kills)
    )
    topology = given.topology
    folder = Path(tempfile.mkdtemp(prefix=f"edgewright-chaos-{plan.seed}-"))
    _say(f"chaos, seed {plan.seed}: {plan.kills} kills, {topology}; in {folder}")
    ran = asyncio.run(run(folder, plan, _centre(topology, folder)))
    for line in report(ran):
        _say(line)
    broken = broken_promises(ran)
    for line in broken:
        _say(line)
    if broken:
        _say(f"{len(broken)} promises are broken (seed {plan.seed}); stores and journal stay in {folder}")
        return 1
    _say(f"every answered request holds (seed {plan.seed})")
    shutil.rmtree(folder)
    return 0


def _patience(kills: int) -> float:
    """Seconds. A put-back is noticed when the upkeep comes round, some clusters at each sweep; a kill leaves one."""
    return 400.0 + kills


def _side_by_side(given: argparse.Namespace) -> int:
    """Several centres that know nothing of each other, each a process with a seed and its share of the kills."""
    kills = -(-given.kills // given.centres)
    runs = []
    for seed in range(given.seed, given.seed + given.centres):
        numbers = ["--kills", str(kills), "--seed", str(seed), "--seconds", str(given.seconds)]
        runs.append(subprocess.Popen([sys.executable, "-m", "tools.chaos", *numbers, "--topology", given.topology]))
    return max(run.wait() for run in runs)


def _given() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="processes to kill")
    parser.add_argument("--seed", type=int, default=None, help="what the wishes and the kills follow from")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no kill is begun later")
    parser.add_argument("--topology", choices=TOPOLOGIES, default="embedded", help="what is played with")
    parser.add_argument("--centres", type=int, default=1, help="so many side by side, with the next seeds")
    given = parser.parse_args()
    if given.seed is None:
        given.seed = secrets.randbelow(1_000_000)
    return given


def _centre(topology: str, folder: Path) -> ChaosCentre:
    return ChaosProductionCentre(folder) if topology == "production" else EmbeddedCentre(folder)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
