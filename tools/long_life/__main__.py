"""`make long-life`: years of one cluster, a line for each, and the verdict."""

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tools.long_life.checks import broken
from tools.long_life.growth import GROWING, Year
from tools.long_life.plan import long_form
from tools.long_life.run import Lived, kinds, live

COLUMNS = ("year", "Temporal's events", "runs ended", "longest", "handed over", "rows", "database", "Temporal's file")
GIT_COLUMNS = ("commits", "loose", "packs", "repository", "worker")


def main() -> int:
    """0: everything holds; 1: something does not, and the folder of the life stays."""
    parser = argparse.ArgumentParser(prog="make long-life", description=__doc__)
    parser.add_argument("--years", type=int, default=10)
    plan = long_form(parser.parse_args().years)
    folder = Path(tempfile.mkdtemp(prefix="edgewright-long-life-"))
    _say(f"{plan.years} years in {folder}")
    _say("| " + " | ".join((*COLUMNS, *GIT_COLUMNS)) + " |")
    _say("|" + "---|" * (len(COLUMNS) + len(GIT_COLUMNS)))
    began = time.monotonic()
    lived = asyncio.run(live(folder, plan, say=lambda year: _say(line(year))))
    _say(f"lived in {time.monotonic() - began:.0f} s")
    _tables(lived)
    found = broken(lived)
    for sentence in found:
        _say(sentence)
    if found:
        _say(f"{len(found)} promises are broken; stores and logs stay in {folder}")
        return 1
    _say(f"the timeline is complete ({len(lived.timeline)} events), and everything is bounded")
    shutil.rmtree(folder)
    return 0


def line(year: Year) -> str:
    """One row of the table."""
    git = year.repository
    told = (
        str(year.number),
        f"{year.events:,}",
        str(year.runs),
        f"{year.longest_run:,}",
        f"{year.largest_handover:,} B",
        f"{sum(year.rows.values()):,}",
        _megabytes(year.database),
        _megabytes(year.temporal),
        f"{git.commits:,}",
        f"{git.loose:,}",
        str(git.packs),
        _megabytes(git.size),
        f"{year.worker:.0f} MB",
    )
    return "| " + " | ".join(told) + " |"


def _tables(lived: Lived) -> None:
    """What one year adds to each table, on the average of all years but the first."""
    first, last = lived.years[0], lived.years[-1]
    years = max(1, last.number - first.number)
    for table in sorted(GROWING):
        rows = (last.rows[table] - first.rows[table]) / years
        size = (last.table_bytes.get(table, 0) - first.table_bytes.get(table, 0)) / years
        _say(f"{table}: {rows:,.0f} rows and {size / 1000:,.0f} kB a year")
    _say("timeline: " + ", ".join(f"{kind} {count}" for kind, count in sorted(kinds(lived).items())))


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
