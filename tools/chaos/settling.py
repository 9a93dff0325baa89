"""Waits until nothing is left to do: the stores say so themselves."""

import asyncio
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from tools.chaos.golden import DATABASE

CALM_SECONDS = 5.0
"""Two sweeps of a run: nothing may begin anew."""
UNFINISHED = """
SELECT name, desired, phase, generation, "change", change_done, waiting_for FROM clusters
WHERE closed_at IS NULL AND ("change" != change_done OR desired = 'deleted' OR (desired = 'present') != ready
OR desired = 'present' AND rendered_digest IS NULL)
OR closed_at IS NOT NULL AND underway
"""
STAGED = "SELECT lower(hex(cluster)), namespace, name, \"key\" FROM staged_changes WHERE state = 'staged'"


def unfinished(home: Path) -> list[str]:
    """What is still to be done, one line each."""
    with closing(sqlite3.connect(f"file:{home / DATABASE}?mode=ro", uri=True, timeout=30)) as database:
        return [repr(row) for statement in (UNFINISHED, STAGED) for row in database.execute(statement)]


async def settle(unfinished: Callable[[], list[str]], *, seconds: float) -> list[str]:
    """Waits for nothing to be left, for two sweeps on end; what is left after so many seconds.

    Args:
        unfinished: what is still to be done; blocks for a moment.
    """
    until = time.monotonic() + seconds
    calm_since: float | None = None
    while True:
        left = await asyncio.to_thread(unfinished)
        now = time.monotonic()
        calm_since = None if left else calm_since or now
        if calm_since is not None and now - calm_since > CALM_SECONDS:
            return []
        if now > until and left:
            return left
        await asyncio.sleep(0.2)
