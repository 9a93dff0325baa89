"""Runs two commands of the Makefile at the same time; it fails as soon as one of them fails, and the other is ended.

What the first one says is shown in one piece when it has ended, so that both can be read.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from typing import IO

ENDING_SECONDS = 30.0
Running = subprocess.Popen[bytes]


def main() -> int:
    """The exit code: of the first one that failed."""
    first, second = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started us may ignore it, and so would they
    with tempfile.TemporaryFile() as said:
        beside = _begin(first, said)
        running = {beside.pid: beside}
        try:
            front = _begin(second, None)
            running[front.pid] = front
            while running:
                pid, status = os.wait()
                running.pop(pid).returncode = code = os.waitstatus_to_exitcode(status)
                if pid == beside.pid:
                    _show(first, said)
                if code:
                    sys.stdout.write(f"=== failed: {first if pid == beside.pid else second}\n")
                    return code if code > 0 else 128 - code
            return 0
        except KeyboardInterrupt:
            return 130
        finally:
            _end(running)


def _begin(command: str, said: IO[bytes] | None) -> Running:
    """In a group of its own, so that all that it starts can be ended with it."""
    return subprocess.Popen(
        ["sh", "-c", f"exec {command}"],
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=None if said is None else subprocess.STDOUT,
        start_new_session=True,
    )


def _show(command: str, said: IO[bytes]) -> None:
    said.seek(0)
    sys.stdout.write(f"\n=== {command}\n{said.read().decode(errors='replace')}===\n")
    sys.stdout.flush()


def _end(running: Mapping[int, Running]) -> None:
    """As Ctrl-C does; pytest still tells what it has found."""
    for each in running.values():
        with suppress(ProcessLookupError):
            os.killpg(each.pid, signal.SIGINT)
    for each in running.values():
        with suppress(subprocess.TimeoutExpired):
            each.wait(ENDING_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(each.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
