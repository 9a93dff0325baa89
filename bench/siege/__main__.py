"""`make siege`: what a fleet notices of one hostile caller of each kind. Exit code 1: too much."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from bench.siege.attackers import ATTACKS, Target
from bench.siege.bystanders import WATCHED, Bystanders, Noticed
from bench.siege.field import Field, MemoryWatch, field
from bench.siege.loop_lag import HELD_SECONDS, LoopWatch, Ticks
from bench.siege.losses import losses

SLOWER = 2.0
"""Times that the p99 of others may grow."""
STARVED = 4
"""Whoever gets less than one part in so many of the answers in peace is kept from the centre."""
FEW = 8
"""Answers in peace; fewer say nothing about starvation."""
NOISE_SECONDS = 0.1
"""A p99 below this is not compared: on two cores, the hostile caller's own computing shows."""
HELD_SHARE = 0.02
"""Of the looks at an event loop that found it held; fewer are not compared."""
MEMORY_MEGABYTES = 400.0
"""That a part of the centre may hold more than at rest."""


@dataclass(frozen=True)
class Phase:
    """One attack, or none, and what came of it."""

    name: str
    noticed: Noticed
    megabytes: dict[str, float]
    ticks: dict[str, Ticks]


def main() -> int:
    arguments = _arguments()
    with field(arguments.edges, interval=arguments.interval, rounds=arguments.rounds) as ground:
        phases = [_played(ground, "quiet", None)]
        _say(_line(phases[0]))
        for name in arguments.attack or ATTACKS:
            phases.append(_played(ground, name, ATTACKS[name]))
            _say(_line(phases[-1]))
        broken = asyncio.run(losses(ground, [write for phase in phases for write in phase.noticed.writes]))
    broken += [each for phase in phases for each in _troubles(phase, phases[0], ratios=not arguments.no_ratios)]
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
    parser.add_argument("--no-ratios", action="store_true", help="judge losses and memory, not how slow it became")
    return parser.parse_args()


def _played(ground: Field, name: str, attack: "Callable[[Target], Awaitable[None]] | None") -> Phase:
    watch = LoopWatch(ground.centre)
    with Bystanders(ground.task) as bystanders, MemoryWatch(ground.centre) as memory, watch:
        bystanders.begin()
        asyncio.run(_beside(ground.target, attack, bystanders))
        noticed = bystanders.noticed()
    return Phase(name, noticed, memory.most, watch.ticks)


async def _beside(
    target: Target, attack: "Callable[[Target], Awaitable[None]] | None", bystanders: Bystanders
) -> None:
    """Attacks until the bystanders' time is over."""
    hostile = asyncio.ensure_future(attack(target)) if attack else None
    while bystanders.living:
        await asyncio.sleep(0.1)
        if hostile is not None and hostile.done():
            hostile.result()
    if hostile is not None:
        hostile.cancel()
        with suppress(asyncio.CancelledError):
            await hostile


def _troubles(phase: Phase, quiet: Phase, *, ratios: bool) -> list[str]:
    """What bystanders should not have noticed."""
    troubles = [f"{phase.name}: {kind} failed: {codes}" for kind, codes in phase.noticed.failed.items()]
    for kind in WATCHED:
        answered, usual = phase.noticed.answered[kind], quiet.noticed.answered[kind]
        if usual >= FEW and answered < usual / STARVED:
            troubles.append(f"{phase.name}: {answered} answers to a {kind}, {usual} in peace")
    for part, megabytes in phase.megabytes.items():
        if megabytes > quiet.megabytes[part] + MEMORY_MEGABYTES:
            troubles.append(f"{phase.name}: the {part} held {megabytes:.0f} MB, {quiet.megabytes[part]:.0f} at rest")
    for part, ticks in phase.ticks.items() if ratios else ():
        usual_share = quiet.ticks[part].share
        if ticks.share > max(SLOWER * usual_share, HELD_SHARE):
            troubles.append(f"{phase.name}: the {part}'s loop was held {ticks.share:.1%}, {usual_share:.1%} in peace")
    for kind in WATCHED if ratios else ():
        before, after = quiet.noticed.p99[kind], phase.noticed.p99[kind]
        if after > max(SLOWER * before, NOISE_SECONDS):
            troubles.append(f"{phase.name}: p99 of a {kind} was {after * 1000:.0f} ms, {before * 1000:.0f} in peace")
    return troubles


def _line(phase: Phase) -> str:
    times = ", ".join(
        f"{kind} {phase.noticed.p50[kind] * 1000:.0f}/{phase.noticed.p99[kind] * 1000:.0f} ms"
        f" ({phase.noticed.answered[kind]})"
        for kind in WATCHED
    )
    memory = ", ".join(f"{part} {megabytes:.0f} MB" for part, megabytes in sorted(phase.megabytes.items()))
    held = ", ".join(f"{part} {ticks.share:.1%}" for part, ticks in phase.ticks.items())
    loops = f"loop late by {HELD_SECONDS * 1000:.0f} ms: {held}"
    return f"{phase.name:15} p50/p99: {times}; most held: {memory}; {loops}"


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
