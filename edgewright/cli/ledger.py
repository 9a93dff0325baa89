"""`processes.json`: which processes an `edgewright up` has started, so that the next one can end survivors.

A process is named by its pid and its creation time together: a pid alone may have gone to somebody else. A record
is opened before its process starts and completed after; one that was never completed (killed in between) is found
by the mark that every child carries in its environment.
"""

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from uuid import uuid4

import psutil

from edgewright.cli.endpoints import write_atomically

MARK = "EDGEWRIGHT_SUPERVISED"
_FILE = "processes.json"
_SAME_MOMENT_SECONDS = 0.1
_PATIENCE_SECONDS = 10.0


@dataclass(frozen=True)
class StartedProcess:
    """One child.

    Args:
        mark: value of its variable ``EDGEWRIGHT_SUPERVISED``.
        pid: None until it is known.
        created: its creation time, seconds since the epoch, as the system tells it.
    """

    part: str
    mark: str
    pid: int | None = None
    created: float | None = None


class ProcessLedger:
    """The file, of one home. Not for use by two processes at once: hold the home."""

    def __init__(self, home: Path) -> None:
        self._path = home / _FILE
        self._open: dict[str, StartedProcess] = {}

    def open_record(self, part: str) -> str:
        """Says that a part is about to be started; returns the mark that its environment must carry."""
        mark = uuid4().hex
        self._open[part] = StartedProcess(part, mark)
        self._write()
        return mark

    def complete_record(self, part: str, pid: int) -> None:
        """Says which process it became."""
        try:
            created = psutil.Process(pid).create_time()
        except psutil.Error:
            return  # gone already; nothing to end later
        self._open[part] = replace(self._open[part], pid=pid, created=created)
        self._write()

    def close_record(self, part: str) -> None:
        """Says that the part's process has ended."""
        if self._open.pop(part, None) is not None:
            self._write()

    def end_survivors(self) -> list[str]:
        """Ends what a killed `edgewright up` has left running: SIGTERM, then SIGKILL.

        Returns:
            The parts that were still there.
        """
        survivors = self._survivors()
        for process in survivors:
            _signal(process, force=False)
        _, stubborn = psutil.wait_procs(list(survivors), timeout=_PATIENCE_SECONDS)
        for process in stubborn:
            _signal(process, force=True)
        psutil.wait_procs(stubborn, timeout=_PATIENCE_SECONDS)
        self._path.unlink(missing_ok=True)
        return sorted(survivors.values())

    def living(self) -> dict[str, int]:
        """The parts on record whose process lives, with its pid."""
        return {part: process.pid for process, part in self._survivors().items()}

    def _survivors(self) -> dict[psutil.Process, str]:
        found = ((_living(record), record.part) for record in self._read())
        return {process: part for process, part in found if process is not None}

    def _write(self) -> None:
        write_atomically(self._path, json.dumps([asdict(record) for record in self._open.values()]) + "\n")

    def _read(self) -> list[StartedProcess]:
        try:
            rows = json.loads(self._path.read_text())
            return [
                StartedProcess(str(row["part"]), str(row["mark"]), row.get("pid"), row.get("created")) for row in rows
            ]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return []


def _living(record: StartedProcess) -> psutil.Process | None:
    if record.pid is None or record.created is None:
        return _marked(record.mark)
    try:
        process = psutil.Process(record.pid)
        same = abs(process.create_time() - record.created) < _SAME_MOMENT_SECONDS
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.Error:
        return None


def _marked(mark: str) -> psutil.Process | None:
    for process in psutil.process_iter():
        try:
            if process.uids().real == os.getuid() and process.environ().get(MARK) == mark:
                return process
        except (psutil.Error, OSError):
            continue
    return None


def _signal(process: psutil.Process, *, force: bool) -> None:
    try:
        if force:
            process.kill()
        else:
            process.terminate()
    except psutil.NoSuchProcess:
        return
