"""What is measured of edges, as lines of the table."""

from collections.abc import Iterator

from bench.attached_edge import new_edge
from bench.delivery_legs import by_leg
from bench.edges_at_once import Load, loads
from bench.held_edges import held
from bench.lines import TableLine, ms, rate, seconds
from bench.lone_held import Weighed
from bench.measures import p50, p99
from edgewright.agent.holding import HASTY_CALLS


def edge_lines() -> Iterator[TableLine]:
    """One edge, from the pasted line to the first secrets, and at rest."""
    with new_edge() as edge:
        attached = edge.attach()
        yield TableLine("Enter -> the bootstrap script has ended", seconds(attached.script), "-", "-")
        yield TableLine("Enter -> *Available*", seconds(attached.available), "-", "60 s")
        figure = f"{seconds(attached.decrypted)}; the centre took it at {seconds(attached.accepted)}"
        yield TableLine("Enter -> the first secret decrypted on the edge", figure, "-", "60 s")
        delivered, written = attached.delivered, p50(attached.written)
        times = [seconds(each) for each in (p50(delivered), p99(delivered), max(delivered))]
        figure = f"{', '.join(times)}; the PUT of it {ms(written)}"
        goal = "p50 5 s, p99 15 s"
        yield TableLine(f"secret PUT -> Kubernetes Secret, p50, p99, slowest of {len(delivered)}", figure, "-", goal)
        for name, leg in by_leg(attached.legs):
            figure = f"{seconds(p50(leg))}, {seconds(p99(leg))}, {seconds(max(leg))}"
            yield TableLine(f"of these, until {name}, p50, p99, slowest of {len(leg)}", figure, "-", "-")
        quick, slow = delivered[:HASTY_CALLS], delivered[HASTY_CALLS:]
        if len(slow) > 1:
            figure = f"p50 {seconds(p50(quick))} and {seconds(p50(slow))}"
            yield TableLine(f"the first {HASTY_CALLS} of these, and those after", figure, "-", "-")
        idle = edge.rest()
        yield TableLine("agent, resident memory at rest", f"{idle.megabytes:.1f} MB", "-", "60 MB")
        figure = f"{idle.centre:.0f} to the centre, {idle.kubernetes:.0f} to the API server"
        yield TableLine("agent, requests in an hour at rest", figure, "-", "-")


def fleet_of_edges_lines(sizes: tuple[int, ...]) -> Iterator[TableLine]:
    """Many edges that live, on one gateway."""
    for load in loads(sizes):
        yield from _lines_of(load)


def _lines_of(load: Load) -> Iterator[TableLine]:
    of, goal = f"{load.edges:,} edges, Git polls each {load.fetch:.0f} s", "held, p99 250 ms"
    wanted = load.edges / load.fetch
    yield TableLine(f"{of}, heartbeats, beyond the time that they wait", rate(load.heartbeats), "-", goal)
    yield TableLine(f"{of}, polls", rate(load.polls), "-", f"{wanted:.1f}/s {goal}")
    yield TableLine(f"{of}, statuses that differ, with 1% of the heartbeats", rate(load.statuses), "-", "-")
    for kind in ("heartbeat", "poll"):
        yield TableLine(f"{of}, {kind}s until all has settled", rate(load.first[kind]), "-", "-")
    cores = ", ".join(f"{part} {used * 100:.0f}%" for part, used in load.cores.items())
    figure = f"{cores}; requests sent late by up to {ms(load.late)} (p99)"
    yield TableLine(f"{of}, of a core", figure, "-", "gateway 40% with 10,000")
    memory = ", ".join(f"{part} {size:.0f} MB" for part, size in load.megabytes.items())
    yield TableLine(f"{of}, memory", memory, "-", "-")
    grown = ", ".join(f"{name} {size / 1e6:,.0f} MB" for name, size in load.grown.items())
    yield TableLine(f"{of}, growth in a day", grown, "-", "-")


def held_lines(sizes: tuple[int, ...]) -> Iterator[TableLine]:
    """Edges that wait for their centre."""
    for one in held(sizes):
        of = f"{one.edges:,} edges that wait"
        more = one.during["gateway"] - one.before["gateway"]
        figure = f"{more:.0f} MB more, {more * 1000 / one.edges:.0f} kB each; {one.during['gateway']:.0f} MB in all"
        yield TableLine(f"{of}, memory of the gateway", figure, "-", "500 MB more with 10,000")
        cores = ", ".join(f"{part} {used * 100:.1f}%" for part, used in one.cores.items())
        yield TableLine(f"{of}, of a core", cores, "-", "-")
        figure = f"p50 {ms(p50(one.told))}, p99 {ms(p99(one.told))}, slowest {ms(max(one.told))}"
        yield TableLine(f"{of}, from the answer to a PUT until its edge is told", figure, "-", "1 s")
        yield TableLine(f"{of}, until all are told of new charts", seconds(one.all_told), "-", "-")
        yield _alone(of, one.alone["http"], one.alone["https"])


def _alone(of: str, without: Weighed, with_tls: Weighed) -> TableLine:
    figure = f"{with_tls.first:.0f} kB each, {with_tls.later:.0f} a minute later; {with_tls.megabytes:.0f} MB in all"
    before = f"without: {without.first:.0f} and {without.later:.0f} kB; {with_tls.later / without.later:.2f} times"
    return TableLine(f"{of}, memory of a gateway alone that ends TLS", f"{figure}; {before}", "-", "50 kB each")
