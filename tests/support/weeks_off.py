"""Weeks pass in which no Temporal server runs: what the sweep's schedule remembers moves into the past, for the
machine's clock stays."""

import re
import sqlite3
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

from temporalio.api.history.v1 import History

from edgewright.messages.names import SWEEP_SCHEDULE

_WORKFLOW = f"temporal-sys-scheduler:{SWEEP_SCHEDULE}"
_SECONDS = re.compile(rb"[\x80-\xff]{4}[\x01-\x7f]")
"""A moment of these decades in seconds, as protobuf writes it. As long as another of them, so that lengths stay."""
_DAY = re.compile(rb"\d{4}-\d\d-\d\d(?=T)")


def be_off(temporal: Path, weeks: int) -> None:
    """Moves each moment in the history of the sweep's schedule back, also those in what the schedule has computed.

    Args:
        temporal: the SQLite file of a Temporal server that does not run.
    """
    with closing(sqlite3.connect(temporal)) as database, database:
        (run,) = database.execute(
            "SELECT run_id FROM current_executions WHERE workflow_id = ?", (_WORKFLOW,)
        ).fetchone()
        nodes = database.execute(
            "SELECT rowid, data FROM history_node WHERE tree_id = ? ORDER BY node_id", (run,)
        ).fetchall()
        begun = History.FromString(nodes[0][1]).events[0].event_time.seconds
        database.executemany(
            "UPDATE history_node SET data = ? WHERE rowid = ?",
            [(_earlier(data, begun, timedelta(weeks=weeks)), node) for node, data in nodes],
        )


def _earlier(data: bytes, near: int, time: timedelta) -> bytes:
    """With each moment within a day of ``near`` so much earlier."""

    def seconds(found: re.Match[bytes]) -> bytes:
        moment = sum((byte & 127) << (7 * place) for place, byte in enumerate(found[0]))
        if abs(moment - near) > timedelta(days=1).total_seconds():
            return found[0]
        moment -= round(time.total_seconds())
        return bytes((moment >> (7 * place) & 127) | (128 if place < 4 else 0) for place in range(5))

    def day(found: re.Match[bytes]) -> bytes:
        return str(date.fromisoformat(found[0].decode()) - time).encode()

    return _DAY.sub(day, _SECONDS.sub(seconds, data))
