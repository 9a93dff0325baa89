"""`make bench`: one table for people, one JSON document for machines."""

import argparse
import asyncio
import json
import os
import platform
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Protocol

import httpx

from bench import measures
from bench.creation_costs import creation_lines
from bench.database_costs import database_lines
from bench.edge_lines import edge_lines, fleet_of_edges_lines, held_lines
from bench.fleets import FleetFigures, fleets
from bench.lines import TableLine, ms
from bench.many_rows import slowest_list
from bench.native_load import load
from bench.production_centre import production_centre
from bench.running_centre import OURS, RunningCentre, running_centre
from bench.start_costs import start_lines

PUT_SECRETS = Path(__file__).parent / "put_secrets.lua"
OF_PRODUCTION = {
    "create -> `ready: true` seen, alone, p50": "200 ms",
    "secret PUT, 10 secrets in the repository, p50": "80 ms",
    "secret PUT, 100 secrets in the repository, p50": "80 ms",
    "secret PUT, 1,000 secrets in the repository, p50": "80 ms",
    "secret PUT, 32 clients, one cluster": "70/s",
    "bootstrap script GET, 32 clients": "300/s",
}
"""Goals on the topology of docker-compose.yml, by measure."""
PARTS = ("all", "centre", "lists", "fleets", "production", "edge", "edges", "held", "database", "creation", "start")
"""`all` is without `production`, `edge` and `database`, which need programs that are built first, without `edges` and
`held`, and without `creation` and `start`, which compare."""


class MeasuredCentre(Protocol):
    """What is measured over HTTP. ``verify``: as httpx takes it."""

    url: str
    verify: ssl.SSLContext | bool

    @property
    def headers(self) -> dict[str, str]:
        """What opens it."""

    def counted(self) -> tuple[int, int]:
        """Repositories of clusters, and accounts."""

    def megabytes(self) -> dict[str, float]:
        """Memory of each part."""


def client_of(centre: MeasuredCentre) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=64)
    return httpx.AsyncClient(
        base_url=centre.url,
        headers=centre.headers,
        limits=limits,
        timeout=300,
        trust_env=False,
        verify=centre.verify,
    )


async def creations(centre: MeasuredCentre, crowds: tuple[int, ...]) -> list[TableLine]:
    async with client_of(centre) as client:
        await measures.created_alone(client, 3)
        alone = await measures.created_alone(client, 20)
        lines = [TableLine("create -> `ready: true` seen, alone, p50", ms(measures.p50(alone)), "11.9 s", "100 ms")]
        for count in crowds:
            enough = asyncio.Event()
            watching = asyncio.create_task(measures.slowest_answers(client, enough))
            seconds = await measures.created_at_once(client, count)
            enough.set()
            slow = measures.p99(await watching)
            before, goal = {20: ("45-103 s, or never", "2 s"), 100: ("0 of 100 in 480 s", "8 s")}.get(
                count, ("-", "100 s")
            )
            lines.append(
                TableLine(f"{count:,} at once, all ready", f"{seconds:.1f} s; gateway p99 {ms(slow)}", before, goal)
            )
        repositories, accounts = centre.counted()
        clusters = 23 + sum(crowds)
        assert (repositories, accounts) == (clusters, 2 * clusters), "something was doubled or lost"
        lines.append(
            TableLine(
                "exactly one repository and two accounts each", f"{repositories:,} and {accounts:,}", "-", "exact"
            )
        )
        return lines


async def secrets(centre: MeasuredCentre, sizes: tuple[int, ...]) -> list[TableLine]:
    before = {10: "135 ms", 100: "165 ms", 1000: "1,062 ms"}
    lines: list[TableLine] = []
    async with client_of(centre) as client:
        uuid, filled = await measures.with_certificate(client), 0
        for size in sizes:
            await measures.fill(client, uuid, filled, size)
            filled = size
            taken = measures.p50(await measures.put_secrets(client, uuid, 30))
            git = measures.p50(measures.clone_commit_push(size, 5))
            figure = f"{ms(taken)}; by clone, commit, push here {ms(git)}: ratio {taken / git:.1f}"
            lines.append(
                TableLine(f"secret PUT, {size:,} secrets in the repository, p50", figure, before[size], "25 ms")
            )
    url = f"{centre.url}/v1/cluster/{uuid}/secret/default"
    rate = await asyncio.to_thread(load, url, clients=32, headers=centre.headers, script=PUT_SECRETS)
    figure = f"{rate.per_second:.0f}/s, p99 {ms(rate.p99)}, none failed"
    lines.append(TableLine("secret PUT, 32 clients, one cluster", figure, "21 of 24 fail at 8", "120/s, p99 600 ms"))
    return lines


async def reads(centre: MeasuredCentre) -> list[TableLine]:
    async with client_of(centre) as client:
        uuid, _ = await measures.create(client, "read-often")
        script = await measures.bootstrap_url(client, uuid)
        edge = await measures.attach(client, (await measures.create(client, "polls-often"))[0])
    status = f"{centre.url}/v1/cluster/{uuid}/status"
    poll = f"{centre.url}/uuid/{edge.cluster}/info/refs?service=git-upload-pack"
    asked = (
        ("bootstrap script GET, 32 clients", script, 32, None, "12/s, p99 4.0 s", "1,000/s, p99 100 ms"),
        ("status GET, 16 clients", status, 16, centre.headers, "812/s, p99 94 ms", "900/s, p99 50 ms"),
        ("Git poll, 16 clients", poll, 16, edge.as_flux, "-", "500/s, p99 100 ms"),
    )
    lines: list[TableLine] = []
    for measure, url, clients, headers, before, goal in asked:
        rate = await asyncio.to_thread(load, url, clients=clients, headers=headers)
        lines.append(TableLine(measure, f"{rate.per_second:.0f}/s, p99 {ms(rate.p99)}", before, goal))
    return lines


async def killed(centre: RunningCentre) -> TableLine:
    """Everything dies by -9 while a cluster is commissioned; the clock runs from the new start."""
    async with client_of(centre) as client:
        uuid = (await client.post("/v1/cluster", json={"name": "interrupted"})).raise_for_status().json()["uuid"]
    centre.kill()
    begun = time.perf_counter()
    centre.start()
    async with client_of(centre) as client:
        await measures.ready(client, uuid)
    seconds = f"{time.perf_counter() - begun:.1f} s"
    return TableLine("killed -9 during commissioning, started again, ready", seconds, "15-53 s", "5 s")


def weights(centre: MeasuredCentre, clusters: int) -> TableLine:
    figure = weighed(centre.megabytes())
    return TableLine(f"gateway + worker, {clusters:,} clusters", figure, "-", "350 MB at 1,000, 700 at 10,000")


def weighed(megabytes: Mapping[str, float]) -> str:
    return " + ".join(f"{megabytes[name]:.0f}" for name in OURS) + " MB"


def fleet_lines(sizes: tuple[int, ...]) -> Iterator[TableLine]:
    """The first size is what the others are compared with."""
    first: FleetFigures | None = None
    for fleet in fleets(sizes):
        first = first or fleet
        of, goal = f"with {fleet.clusters:,} clusters running", "1.5 times that of 100"
        goals = {1000: "350 MB", 10_000: "700 MB"}
        yield TableLine(f"gateway + worker, {of}", weighed(fleet.megabytes), "-", goals.get(fleet.clusters, "-"))
        yield TableLine(f"Temporal's server, {of}", f"{fleet.megabytes['temporal']:.0f} MB", "-", "-")
        cores = ", ".join(f"{part} {busy * 100:.1f}%" for part, busy in fleet.busy.items())
        yield TableLine(f"of a core at rest, {of}", cores, "-", "-")
        files = ", ".join(f"{name} {size / 1e6:.1f} MB" for name, size in fleet.files.items())
        yield TableLine(f"files, {of}", files, "-", "-")
        yield TableLine(f"`edgewright up` until all workflows rest, {of}", f"{fleet.started:.0f} s", "-", "-")
        yield TableLine(f"create, {of}, p50", compared(fleet.created, first.created), "-", goal)
        yield TableLine(f"secret PUT, {of}, p50", compared(fleet.put, first.put), "-", goal)
        for question, seconds in fleet.listed.items():
            yield TableLine(f"list `{question}`, {of}, p50", compared(seconds, first.listed[question]), "-", goal)


def compared(seconds: float, with_first: float) -> str:
    return f"{ms(seconds)}: {seconds / with_first:.1f} times"


def lists(rows: int) -> TableLine:
    seconds, question = slowest_list(rows)
    return TableLine(
        f"list of {rows:,}, page of 100, slowest kind, p50", f"{ms(seconds)} (`{question}`)", "-", "50 ms"
    )


def measure(part: str, *, full: bool, beside: Path | None = None, edges: tuple[int, ...] = ()) -> Iterator[TableLine]:
    """All measures of a part, or of all parts, in the order of the table.

    Args:
        edges: how many of them `edges` and `held` play; empty: what ``full`` says.
    """
    edges = edges or ((1000, 10_000) if full else (1000,))
    if part in {"centre", "all"}:
        yield from of_a_centre(full=full)
    if part in {"lists", "all"}:
        yield from (lists(rows) for rows in (100, 10_000))
    if part == "production":
        yield from (replace(line, goal=OF_PRODUCTION.get(line.measure, "-")) for line in of_production(full=full))
    if part == "edge":
        yield from edge_lines()
    if part == "edges":
        yield from fleet_of_edges_lines(edges)
    if part == "database":
        yield from database_lines()
    if part == "creation":
        yield from creation_lines(beside)
    if part == "start":
        yield from start_lines(beside)
    if part == "held":
        yield from held_lines(edges)
    if part == "fleets" or (part == "all" and full):
        yield from fleet_lines((100, 1000, 10_000) if full else (100, 1000))


def of_a_centre(*, full: bool) -> Iterator[TableLine]:
    """What is measured on one `edgewright up`."""
    with running_centre() as centre:
        yield from over_http(centre, full=full)
        yield asyncio.run(killed(centre))


def of_production(*, full: bool) -> Iterator[TableLine]:
    """The same on the topology of docker-compose.yml, through its proxy; it has goals of its own."""
    with production_centre() as centre:
        yield from over_http(centre, full=full)


def over_http(centre: MeasuredCentre, *, full: bool) -> Iterator[TableLine]:
    """What is measured of a centre from its first cluster on, wherever it runs."""
    crowds = (20, 100, 1000) if full else (20, 100)
    yield from asyncio.run(creations(centre, crowds))
    yield weights(centre, 23 + sum(crowds))
    yield from asyncio.run(secrets(centre, (10, 100, 1000) if full else (10, 100)))
    yield from asyncio.run(reads(centre))


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument(
        "--full",
        action="store_true",
        help="also 1,000 at once, the repository of 1,000 secrets, and fleets of up to 10,000",
    )
    parser.add_argument("--part", choices=PARTS, default="all", help="measure only this")
    parser.add_argument(
        "--beside",
        metavar="FOLDER",
        type=Path,
        help="of another version's files, which `creation` and `start` are compared with",
    )
    parser.add_argument(
        "--edges", metavar="NUMBER", type=int, action="append", help="play so many edges, in `edges` and `held`"
    )
    parser.add_argument("--json", metavar="FILE", help="write the figures here as well")
    options = parser.parse_args()
    print("| measure | here | the system before | goal |")
    print("|---|---|---|---|", flush=True)
    lines: list[TableLine] = []
    beside = options.beside and options.beside.absolute()
    for line in measure(options.part, full=options.full, beside=beside, edges=tuple(options.edges or ())):
        lines.append(line)
        print(f"| {line.measure} | {line.figure} | {line.before} | {line.goal} |", flush=True)
    if options.json:
        machine = {"cores": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()}
        with open(options.json, "w", encoding="utf-8") as out:  # noqa: PTH123 - a path as the user typed it
            json.dump({"machine": machine, "lines": [asdict(line) for line in lines]}, out, indent=2)


if __name__ == "__main__":
    main()
