"""`make siege`: what a fleet notices of one hostile caller of each kind. Exit code 1: too much."""

import argparse
import asyncio
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

from bench.siege.arrivals import SIGNALS, missing
from bench.siege.attackers import ATTACKS
from bench.siege.bystanders import WATCHED, Bystanders, Noticed, worse
from bench.siege.field import Field, MemoryWatch, field
from bench.siege.loop_lag import HELD_SECONDS, LoopWatch
from bench.siege.losses import losses
from bench.siege.target import Target
from bench.siege.verdict import SiegePhase, troubles

NICENESS = 19
LONGEST = 60.0
"""Seconds in which an attack that has not arrived yet gets another round beside the bystanders."""


def main() -> int:
    arguments = _arguments()
    with field(arguments.edges, interval=arguments.interval, rounds=arguments.rounds) as ground:
        phases = [_played(ground, "quiet", None)]
        _say(_line(phases[0]))
        for name in (name for name in ATTACKS if name in (arguments.attack or ATTACKS)):
            phases.append(_played(ground, name, ATTACKS[name]))
            _say(_line(phases[-1]))
        writes = [write for phase in phases for write in phase.noticed.writes]
        flooded = any(phase.met.get(SIGNALS) for phase in phases)
        broken = asyncio.run(losses(ground, writes, flooded=flooded))
    broken += [each for phase in phases for each in troubles(phase, phases[0], ratios=not arguments.no_ratios)]
    for each in broken:
        _say(f"broken: {each}")
    _say(f"siege: {len(phases) - 1} attacks, {arguments.edges} edges, {len(broken)} promises broken")
    return 1 if broken else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make siege", description=__doc__)
    parser.add_argument("--edges", type=int, default=200)
    parser.add_argument("--interval", type=float, default=10.0, help="seconds between two heartbeats of an edge")
    parser.add_argument("--rounds", type=float, default=4.0, help="intervals for which a phase lasts")
    parser.add_argument("--attack", action="append", choices=sorted(ATTACKS), help="only this; may be repeated")
    parser.add_argument(
        "--no-ratios",
        action="store_true",
        help="judge losses, memory and what holds the worker, not how slow it became",
    )
    return parser.parse_args()


def _played(ground: Field, name: str, attack: "Callable[[Target], Awaitable[None]] | None") -> SiegePhase:
    watch, target, over = LoopWatch(ground.centre), replace(ground.target, met=Counter()), threading.Event()
    with Bystanders(ground.task) as bystanders, MemoryWatch(ground.centre) as memory, watch:
        bystanders.begin()
        with ThreadPoolExecutor(1, initializer=_compute_elsewhere) as elsewhere:
            until = time.monotonic() + LONGEST
            hostile = elsewhere.submit(asyncio.run, _beside(target, attack, over))
            try:
                noticed = noticed_until(
                    lambda: hostile.done() or time.monotonic() >= until or not missing(name, target.met),
                    first=bystanders.noticed(),
                    another=lambda: _another_round(ground),
                )
            finally:
                over.set()
            hostile.result()
    return SiegePhase(name, noticed, memory.most, watch.ticks, watch.held, target.met)


def noticed_until(arrived: Callable[[], bool], *, first: Noticed, another: Callable[[], Noticed]) -> Noticed:
    """What bystanders saw in as many rounds as a slow attacker needs: all that counts holds in each of them.

    Args:
        arrived: whether the attack has arrived, or cannot any more.
    """
    noticed = first
    while not arrived():
        noticed = worse(noticed, another())
    return noticed


def _another_round(ground: Field) -> Noticed:
    with Bystanders(ground.task) as bystanders:
        bystanders.begin()
        return bystanders.noticed()


def _compute_elsewhere() -> None:
    """A hostile caller has a machine of its own: what it computes is not to be what the others wait for. So this
    thread, and whatever it starts, gives way; what it sends is counted.
    """
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)


async def _beside(
    target: Target, attack: "Callable[[Target], Awaitable[None]] | None", over: threading.Event
) -> None:
    """Attacks until it is over."""
    hostile = asyncio.ensure_future(attack(target)) if attack else None
    while not over.is_set():
        await asyncio.sleep(0.1)
        if hostile is not None and hostile.done():
            hostile.result()
    if hostile is not None:
        hostile.cancel()
        with suppress(asyncio.CancelledError):
            await hostile


def _line(phase: SiegePhase) -> str:
    times = ", ".join(
        f"{kind} {phase.noticed.p50[kind] * 1000:.0f}/{phase.noticed.p99[kind] * 1000:.0f} ms"
        f" ({phase.noticed.answered[kind]})"
        for kind in WATCHED
    )
    memory = ", ".join(f"{part} {megabytes:.0f} MB" for part, megabytes in sorted(phase.megabytes.items()))
    held = ", ".join(f"{part} {ticks.share:.1%}" for part, ticks in phase.ticks.items())
    loops = f"loop late by {HELD_SECONDS * 1000:.0f} ms: {held}"
    loops += f", held by one task of the worker for up to {phase.held * 1000:g} ms"
    met = "".join(f"; {number} {what}" for what, number in phase.met.items())
    return f"{phase.name:15} p50/p99: {times}; most held: {memory}; {loops}{met}"


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
