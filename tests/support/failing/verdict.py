"""A program: waits until a centre has nothing left to do, then says which promises its stores break.

It runs in the centre's mount namespace: SQLite opens nothing by a path through ``/proc``.
"""

import asyncio
import sys
from pathlib import Path

from chaos.checker import check
from chaos.settling import settle

PATIENCE_SECONDS = 90


def main(home: Path, journal: Path, keys: Path) -> None:
    """Prints one line for each thing that is wrong."""
    left = asyncio.run(settle(home, seconds=PATIENCE_SECONDS))
    for line in left or map(str, check(home, journal, keys)):
        sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
