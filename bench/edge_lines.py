"""What is measured of edges, as lines of the table."""

from collections.abc import Iterator

from bench.attached_edge import new_edge
from bench.edges_at_once import INTERVAL, Load, loads
from bench.lines import Line, ms, rate, seconds
from bench.measures import p50
from edgewright.agent.pauses import JITTER

FLUX_INTERVAL = 180.0
"""Seconds between two polls of a driving repository, as it is rendered."""
SHORTER_INTERVAL = 60.0
HEARTBEAT_INTERVAL = 100.0
"""Seconds between two heartbeats: a third of the lease that a cluster has by default."""


def edge_lines() -> Iterator[Line]:
    """One edge, from the pasted line to the first secrets, and at rest."""
    with new_edge() as edge:
        attached = edge.attach()
        yield Line("Enter -> the bootstrap script has ended", seconds(attached.script), "-", "-")
        yield Line("Enter -> *Available*", seconds(attached.available), "-", "60 s")
        figure = f"{seconds(attached.decrypted)}; the centre took it at {seconds(attached.accepted)}"
        yield Line("Enter -> the first secret decrypted on the edge, fetched at once", figure, "-", "60 s")
        delivered = p50(attached.delivered)
        slowest, written = max(attached.delivered), p50(attached.written)
        figure = f"{seconds(delivered)}, slowest {seconds(slowest)}; the PUT of it {ms(written)}"
        yield Line("secret PUT -> Kubernetes Secret, fetched at once, p50", figure, "-", "-")
        yield from _waiting_lines(delivered)
        idle = edge.rest()
        yield Line("agent, resident memory at rest", f"{idle.megabytes:.1f} MB", "-", "60 MB")
        figure = f"{idle.centre:.0f} to the centre, {idle.kubernetes:.0f} to the API server"
        yield Line("agent, requests in an hour at rest", figure, "-", "-")


def _waiting_lines(delivered: float) -> Iterator[Line]:
    """What the ways to learn of a commit add to the seconds that it takes once it is fetched."""
    each = "secret PUT -> Kubernetes Secret, fetched each"
    asked = f"{FLUX_INTERVAL:.0f} s, and when a heartbeat ({HEARTBEAT_INTERVAL:.0f} s) tells (not built)"
    ways = {
        f"{FLUX_INTERVAL:.0f} s": (FLUX_INTERVAL / 2, FLUX_INTERVAL),
        asked: (_sooner(HEARTBEAT_INTERVAL, FLUX_INTERVAL), HEARTBEAT_INTERVAL * (1 + JITTER)),
        f"{SHORTER_INTERVAL:.0f} s": (SHORTER_INTERVAL / 2, SHORTER_INTERVAL),
    }
    for way, (mean, most) in ways.items():
        figure = f"{delivered + mean:.0f} s on average, {delivered + most:.0f} s at most (computed)"
        yield Line(f"{each} {way}", figure, "-", "-")


def _sooner(shorter: float, longer: float) -> float:
    """The average wait, in seconds, for the sooner of two that come at these intervals, each on its own."""
    return shorter / 2 - shorter**2 / (6 * longer)


def fleet_of_edges_lines(sizes: tuple[int, ...]) -> Iterator[Line]:
    """Many edges that live, on one gateway."""
    for load in loads(sizes):
        yield from _lines_of(load)


def _lines_of(load: Load) -> Iterator[Line]:
    of, goal = f"{load.edges:,} edges", f"{load.wanted:.1f}/s held, p99 250 ms"
    yield Line(f"{of}, heartbeats each {INTERVAL:.0f} s", rate(load.heartbeats), "-", goal)
    yield Line(f"{of}, Git polls each {INTERVAL:.0f} s", rate(load.polls), "-", goal)
    yield Line(f"{of}, statuses that differ, with 1% of the heartbeats", rate(load.statuses), "-", "-")
    for kind in ("heartbeat", "poll"):
        measure = f"{of}, {kind}s of the first minute after a start of the centre"
        yield Line(measure, rate(load.first[kind]), "-", "-")
    cores = ", ".join(f"{part} {used * 100:.0f}%" for part, used in load.cores.items())
    yield Line(f"{of}, of a core", f"{cores}; requests sent late by up to {ms(load.late)} (p99)", "-", "-")
    memory = ", ".join(f"{part} {size:.0f} MB" for part, size in load.megabytes.items())
    yield Line(f"{of}, memory", memory, "-", "-")
    grown = ", ".join(f"{name} {size / 1e6:,.0f} MB" for name, size in load.grown.items())
    yield Line(f"{of}, growth in a day", grown, "-", "-")
