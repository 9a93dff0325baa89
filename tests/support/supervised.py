"""Stand-ins for the real parts, and a supervisor that runs beside the test."""

import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from edgewright.cli.ledger import ProcessLedger
from edgewright.cli.supervisor import Part, RestartPolicy, StopSignals, Supervisor

SERVES = """
import signal, sys, time
from pathlib import Path
ready, diary, name = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
def stop(*_):
    with diary.open("a") as file: file.write(f"{name} stopped\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
ready.touch()
while True: time.sleep(0.01)
"""

STUBBORN = """
import signal, sys, time
from pathlib import Path
signal.signal(signal.SIGTERM, signal.SIG_IGN)
Path(sys.argv[1]).touch()
while True: time.sleep(0.01)
"""

DIES = "import sys; print('the reason'); sys.exit(3)"


LONGEST_PAUSE = 0.2
LONGEST_AFTER_ASKING = 2.0
"""Seconds: to ask may be to run a whole command."""


def eventually(condition: Callable[[], object], *, seconds: float = 60.0) -> None:
    """Returns when a condition holds; fails the test if it does not in time."""
    began = time.monotonic()
    while True:
        asked = time.monotonic()
        if condition():
            return
        now = time.monotonic()
        assert now - began < seconds, "it did not happen in time"
        time.sleep(pause(asking=now - asked, waited=now - began))


def pause(*, asking: float, waited: float) -> float:
    """Seconds until the next question.

    Asking takes processor time from what is waited for. So this is twice as long as asking takes, and longer the
    longer it was waited already: at most a tenth of that is lost.
    """
    return max(min(2 * asking, LONGEST_AFTER_ASKING), min(max(0.01, waited / 10), LONGEST_PAUSE))


def living(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@dataclass
class SupervisedHome:
    """One home with a supervisor. What it says is in ``said``; what parts did is in ``diary``."""

    home: Path
    policy: RestartPolicy = RestartPolicy(first_pause=0.01, longest_pause=0.02)
    said: list[str] = field(default_factory=list)
    signals: StopSignals = field(default_factory=StopSignals)

    def __post_init__(self) -> None:
        (self.home / "logs").mkdir(parents=True, exist_ok=True)
        self.ledger = ProcessLedger(self.home)
        self.supervisor = Supervisor(self.ledger, self.signals, self.said.append, self.policy)

    def part(self, name: str, program: str = SERVES, *, grace: float = 10.0) -> Part:
        ready = self.home / f"{name}.ready"
        return Part(
            name=name,
            command=[sys.executable, "-c", program, str(ready), str(self.home / "diary"), name],
            environment=dict(os.environ),
            log=self.home / "logs" / f"{name}.log",
            ready=ready.exists,
            ready_file=ready,
            grace=grace,
        )

    def start(self, name: str, program: str = SERVES, *, grace: float = 10.0) -> int:
        self.supervisor.start(self.part(name, program, grace=grace))
        self.supervisor.wait_ready(name, seconds=20)
        pid = self.supervisor.pid_of(name)
        assert pid
        return pid

    def diary(self) -> list[str]:
        path = self.home / "diary"
        return path.read_text().splitlines() if path.exists() else []

    def stop_soon(self, after: Callable[[], object] = lambda: True) -> None:
        """Asks to stop, from beside, once a condition holds."""

        def ask() -> None:
            eventually(after)
            self.signals.ask()

        threading.Thread(target=ask, daemon=True).start()
