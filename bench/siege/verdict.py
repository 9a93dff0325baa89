"""What the siege puts up with, and what breaks a promise."""

from collections.abc import Mapping
from dataclasses import dataclass

from bench.siege.arrivals import SUCCEEDS, missing
from bench.siege.bystanders import WATCHED, Noticed
from bench.siege.field import GIT
from bench.siege.loop_lag import HELD_SECONDS, Ticks
from edgewright.adapters.git.memory_limit import PUSH_MEMORY

SLOWER = 2.0
"""Times that the p99 of others may grow."""
STARVED = 4
"""Whoever gets less than one part in so many of the answers in peace is kept from the centre."""
FEW = 8
"""Answers in peace; fewer say nothing about starvation."""
NOISE_SECONDS = 0.1
"""A p99 below this is not compared: on two cores, the hostile caller's own computing shows."""
HELD_SHARE = 0.02
"""Share of the looks at an event loop that found it held; a smaller one is not compared."""
MEMORY_MEGABYTES = 400.0
"""That a part of the centre may hold more than at rest."""
GIT_MEGABYTES = PUSH_MEMORY / 1e6
"""That one git may hold, as docs/operations.md says of pushes; fetches of a fleet take less."""


@dataclass(frozen=True)
class SiegePhase:
    """One attack, or none, and what came of it.

    Args:
        held: for how long a task held the worker's loop at most; processor seconds.
    """

    name: str
    noticed: Noticed
    megabytes: dict[str, float]
    ticks: dict[str, Ticks]
    held: float
    met: Mapping[str, int]


def troubles(phase: SiegePhase, quiet: SiegePhase, *, ratios: bool) -> list[str]:
    """What should not have come of an attack, in sentences.

    Args:
        quiet: the phase without an attack.
        ratios: whether it counts how slow the centre has become.
    """
    found = [f"{phase.name}: {kind} failed: {codes}" for kind, codes in phase.noticed.failed.items()]
    for kind in WATCHED:
        answered, usual = phase.noticed.answered[kind], quiet.noticed.answered[kind]
        if usual >= FEW and answered < usual / STARVED:
            found.append(f"{phase.name}: {answered} answers to a {kind}, {usual} in peace")
    for what in missing(phase.name, phase.met):
        number = phase.met.get(what)
        found.append(f"{phase.name}: only {number} {what}" if number else f"{phase.name}: no {what}")
    found += [
        f"{phase.name}: {phase.met[what]} {what}" for what in SUCCEEDS.get(phase.name, ()) if phase.met.get(what)
    ]
    for part, megabytes in phase.megabytes.items():
        if part == GIT and megabytes > GIT_MEGABYTES:
            found.append(f"{phase.name}: a git held {megabytes:.0f} MB, {GIT_MEGABYTES:.0f} are allowed")
        if part != GIT and megabytes > quiet.megabytes[part] + MEMORY_MEGABYTES:
            found.append(f"{phase.name}: the {part} held {megabytes:.0f} MB, {quiet.megabytes[part]:.0f} at rest")
    if phase.held > HELD_SECONDS:
        found.append(f"{phase.name}: a task held the worker's loop for up to {phase.held * 1000:.0f} ms")
    for part, ticks in phase.ticks.items() if ratios else ():
        usual_share = quiet.ticks[part].share
        if ticks.share > max(SLOWER * usual_share, HELD_SHARE):
            found.append(f"{phase.name}: the {part}'s loop was held {ticks.share:.1%}, {usual_share:.1%} in peace")
    for kind in WATCHED if ratios else ():
        before, after = quiet.noticed.p99[kind], phase.noticed.p99[kind]
        if after > max(SLOWER * before, NOISE_SECONDS):
            found.append(f"{phase.name}: p99 of a {kind} was {after * 1000:.0f} ms, {before * 1000:.0f} in peace")
    return found
