"""`make bench`: one table for people, one JSON document for machines."""

import argparse
import asyncio
import json
import os
import platform
from dataclasses import asdict, dataclass

import httpx

from bench import measures
from bench.running_centre import RunningCentre, running_centre


@dataclass(frozen=True)
class Line:
    """One measure. ``before``: the system before, as it was measured on a machine of the same size."""

    measure: str
    figure: str
    before: str


async def measure(centre: RunningCentre, *, full: bool) -> list[Line]:
    """All measures, in the order of the table."""
    limits = httpx.Limits(max_connections=64)
    headers = {"Authorization": f"Bearer {centre.token}"}
    async with httpx.AsyncClient(base_url=centre.url, headers=headers, limits=limits, timeout=120) as client:
        await measures.created_alone(client, 3)
        alone = await measures.created_alone(client, 20)
        lines = [Line("create -> `ready: true` seen, alone, p50", ms(measures.p50(alone)), "11.9 s")]
        crowd = await measures.created_at_once(client, 20)
        lines.append(Line("20 created at once, all ready", f"{crowd:.2f} s", "45-103 s, or never"))
        uuid = await measures.with_certificate(client)
        filled = 0
        for size, before in ((10, "135 ms"), (100, "165 ms"), (1000, "1,062 ms"))[: 3 if full else 2]:
            await measures.fill(client, uuid, filled, size)
            filled = size
            taken = measures.p50(await measures.put_secrets(client, uuid, 30))
            git = measures.p50(measures.clone_commit_push(size, 5))
            lines.append(
                Line(
                    f"secret PUT, {size:,} secrets in the repository, p50",
                    f"{ms(taken)}; by clone, commit, push here {ms(git)}: ratio {taken / git:.1f}",
                    before,
                )
            )
        for clients, before in ((1, "8.7/s"), (32, "12/s, p99 4.0 s")):
            rate, slow = await measures.get_bootstrap(client, uuid, clients=clients, requests=600)
            lines.append(Line(f"bootstrap script GET, {clients} client(s)", f"{rate:.0f}/s, p99 {ms(slow)}", before))
        return lines


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__)
    parser.add_argument("--full", action="store_true", help="also the repository of 1,000 secrets")
    parser.add_argument("--json", metavar="FILE", help="write the figures here as well")
    options = parser.parse_args()
    with running_centre() as centre:
        lines = asyncio.run(measure(centre, full=options.full))
    print("| measure | here | the system before |")
    print("|---|---|---|")
    for line in lines:
        print(f"| {line.measure} | {line.figure} | {line.before} |")
    if options.json:
        machine = {"cores": os.cpu_count(), "python": platform.python_version()}
        with open(options.json, "w", encoding="utf-8") as out:  # noqa: PTH123 - a path as the user typed it
            json.dump({"machine": machine, "lines": [asdict(line) for line in lines]}, out, indent=2)


if __name__ == "__main__":
    main()
