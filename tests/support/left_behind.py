"""Ends what a run of the tests has started and could not end: pytest-xdist gives its processes a few seconds after
Ctrl-C, and a run that is killed ends nothing.

Run as a program it reads its standard input to the end, which comes when the run is over, however it ended.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from uuid import uuid4

import psutil

MARK = "TESTS_OF"
"""What every process that the run starts bears in its environment, by way of the run's own."""
PATIENCE = 30.0


def watch_over_this_run() -> "subprocess.Popen[bytes]":
    """Marks all that this process starts from here on; what is left of it ends when the input of what is returned
    does."""
    mark = str(uuid4())
    watch = subprocess.Popen([sys.executable, __file__, mark], stdin=subprocess.PIPE, start_new_session=True)
    os.environ[MARK] = mark
    return watch


def marked() -> dict[str, str]:
    """The mark, for a process that gets nothing else of this environment."""
    return {MARK: os.environ[MARK]} if MARK in os.environ else {}


def end(mark: str) -> list[str]:
    """Ends what bears the mark and what that has started; returns what it was."""
    ended = {}
    until = time.monotonic() + PATIENCE
    while (found := {each.pid: each for each in _bearing(mark)}) and time.monotonic() < until:
        for process in found.values():
            with suppress(psutil.Error):
                ended[process.pid] = process.name()
                process.kill()
        psutil.wait_procs(list(found.values()), timeout=1)
    return sorted(ended.values())


def _bearing(mark: str) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if process.status() == psutil.STATUS_ZOMBIE or process.environ().get(MARK) != mark:
                continue
            yield process
            yield from process.children(recursive=True)


def main() -> None:
    """See the module."""
    sys.stdin.buffer.read()
    if ended := end(sys.argv[1]):
        with suppress(OSError):
            sys.stderr.write(f"ended what the tests have left behind: {', '.join(ended)}\n")


if __name__ == "__main__":
    main()
