"""Waits until a centre has nothing left to do, then says which promises its stores break.

A program, to be run in a centre's own mount namespace: SQLite opens nothing by a path through ``/proc``.
"""

import asyncio
import sys
from functools import partial
from pathlib import Path

from tools.chaos.checker import check
from tools.chaos.settling import settle, unfinished

PATIENCE_SECONDS = 90


def verdict(home: Path, journal: Path, keys: Path) -> list[str]:
    """One line for each thing that is wrong."""
    left = asyncio.run(settle(partial(unfinished, home), seconds=PATIENCE_SECONDS))
    return left or list(map(str, check(home, journal, keys)))


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in verdict(*map(Path, sys.argv[1:])))
