"""Keeps the parts of an embedded Edgewright running: starts, watches, restarts and stops them.

One thread owns the children and does everything in ``tick``; what takes long runs beside it and is waited for.
"""

import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from edgewright.cli.failures import CliError, ExitCode
from edgewright.cli.ledger import MARK, ProcessLedger
from edgewright.cli.part_logs import bound_log, log_size, log_tail, reason_in

_TICK_SECONDS = 0.05
_LOG_CHECK_SECONDS = 60.0
_HOUR = 3600.0
NICENESS = 2
"""Steps by which parts give way. The gateway, which uses one core at most, then has its core of two; on a machine
that does much else, the parts keep most of their share."""
_TRIES, _BETWEEN_TRIES_SECONDS = 5, 0.11
_LAST_LINES = 5
_LONGEST_LINE = 300

T = TypeVar("T")


class StopRequested(Exception):
    """Ctrl-C, SIGTERM or SIGHUP: the one way in which `up` ends well."""


@dataclass(frozen=True)
class RestartPolicy:
    """How deaths are answered. Seconds.

    Args:
        first_pause: before the first restart; doubled with each further death within ``window``.
        longest_pause: no pause is longer.
        deaths: so many deaths of one part within ``window`` end everything.
    """

    first_pause: float = 0.25
    longest_pause: float = 10.0
    deaths: int = 5
    window: float = 60.0

    def pause_after(self, deaths: int) -> float:
        """The pause before the restart that follows so many recent deaths (1 and more)."""
        return min(self.longest_pause, self.first_pause * 2.0 ** (deaths - 1))


@dataclass(frozen=True)
class Part:
    """One supervised program.

    Args:
        name: a lower-case word; the log is ``logs/<name>.log``.
        command: program and arguments.
        environment: the whole environment of the child.
        ready: whether it serves; called often; the other parts are not watched while it is asked.
        ready_file: removed before each start, for a child that makes it when it serves.
        grace: seconds between SIGTERM and SIGKILL.
        advice: what may help when it keeps dying, beside its log.
        folder: where it runs; None: where we do.
        yields: gives way where the processor is short. Edges wait for the gateway; nobody waits for the others.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    ready: Callable[[], bool]
    ready_file: Path | None = None
    grace: float = 15.0
    advice: str = ""
    folder: Path | None = None
    yields: bool = False


@dataclass
class _Child:
    part: Part
    running: subprocess.Popen[bytes] | None = None
    restart_at: float | None = None
    log_from: int = 0
    """Where in its log the newest run begins, in bytes."""
    deaths: deque[float] = field(default_factory=deque)


class StopSignals:
    """Counts the wishes to stop. The first asks, the second insists."""

    def __init__(self) -> None:
        self.count = 0

    def listen(self) -> None:
        """Takes SIGINT, SIGTERM and SIGHUP from here on; a SIGHUP that is ignored (nohup) stays so."""
        wanted = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            wanted.append(signal.SIGHUP)
        for number in wanted:
            signal.signal(number, lambda _number, _frame: self.ask())

    def ask(self) -> None:
        """One more wish to stop. A bare number, because a signal may strike while a lock is held."""
        self.count += 1


class Supervisor:
    """Owns the children of one home.

    Args:
        say: takes one plain line for the terminal.
    """

    def __init__(
        self,
        ledger: ProcessLedger,
        stop_signals: StopSignals,
        say: Callable[[str], None],
        policy: RestartPolicy = RestartPolicy(),
    ) -> None:
        self._ledger = ledger
        self._signals = stop_signals
        self._say = say
        self._policy = policy
        self._children: dict[str, _Child] = {}
        self._logs_checked = time.monotonic()

    def start(self, part: Part) -> None:
        """Starts a part and watches it from here on."""
        child = self._children[part.name] = _Child(part)
        self._spawn(child)

    def wait_ready(self, name: str, *, seconds: float) -> None:
        """Returns when a part serves.

        Raises:
            CliError: it did not in time, or a part keeps dying.
            StopRequested.
        """
        child = self._children[name]
        part = child.part
        if not self.wait_for(part.ready, seconds=seconds):
            raise CliError(
                f"{name} was not ready within {seconds:.0f} seconds.",
                _why(child),
                ExitCode.UNAVAILABLE,
            )

    def wait_for(self, condition: Callable[[], bool], *, seconds: float) -> bool:
        """Watches over the children until a condition holds; False if it does not within so many seconds.

        Raises:
            CliError: a part keeps dying.
            StopRequested.
        """
        until = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until:
                return False
            time.sleep(_TICK_SECONDS)
            self.tick()
        return True

    def watch(self, hourly: Callable[[], None] = lambda: None) -> None:
        """Watches over the children for good; ends only by raising.

        Args:
            hourly: work that is due once an hour; quick, for the children are not watched meanwhile.
        """
        due = time.monotonic() + _HOUR
        while True:
            time.sleep(_TICK_SECONDS * 2)
            self.tick()
            if time.monotonic() > due:
                due += _HOUR
                hourly()

    def tick(self) -> None:
        """One round: notices deaths, restarts what is due, bounds the logs.

        Raises:
            CliError: a part keeps dying.
            StopRequested.
        """
        if self._signals.count:
            raise StopRequested
        now = time.monotonic()
        for child in self._children.values():
            code = child.running.poll() if child.running is not None else None
            if code is not None:
                self._bury(child, code, now)
            if child.restart_at is not None and now >= child.restart_at:
                self._spawn(child)
        if now - self._logs_checked > _LOG_CHECK_SECONDS:
            self._logs_checked = now
            for child in self._children.values():
                bound_log(child.part.log)

    def stop(self) -> None:
        """Stops everything in the opposite order of its start; a second wish to stop kills what is left."""
        for child in reversed(self._children.values()):
            child.restart_at = None
            if child.running is not None:
                self._end(child.running, child.part.grace)
                self._ledger.close_record(child.part.name)
                child.running = None

    def pid_of(self, name: str) -> int | None:
        """The process of a part; None while it has none."""
        child = self._children.get(name)
        return child.running.pid if child and child.running else None

    def _spawn(self, child: _Child) -> None:
        part = child.part
        child.restart_at = None
        if part.ready_file:
            part.ready_file.unlink(missing_ok=True)
        bound_log(part.log)
        child.log_from = log_size(part.log)
        mark = self._ledger.open_record(part.name)
        with part.log.open("ab") as log:
            try:
                child.running = subprocess.Popen(
                    list(part.command),
                    env={**part.environment, MARK: mark},
                    cwd=part.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    # Its own session: Ctrl-C in the terminal reaches us alone, and we stop the parts in order.
                    start_new_session=True,
                )
            except OSError as error:
                self._ledger.close_record(part.name)
                raise CliError(f"{part.name} cannot be started: {part.command[0]}: {error.strerror}.") from error
        part.log.chmod(0o600)
        self._ledger.complete_record(part.name, child.running.pid)
        if part.yields:
            _give_way(child.running.pid)

    def _bury(self, child: _Child, code: int, now: float) -> None:
        part = child.part
        child.running = None
        self._ledger.close_record(part.name)
        child.deaths.append(now)
        while now - child.deaths[0] > self._policy.window:
            child.deaths.popleft()
        deaths = len(child.deaths)
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
        if deaths >= self._policy.deaths:
            raise CliError(
                f"{part.name} {how}, {deaths} times within {self._policy.window:.0f} seconds. Everything is stopped.",
                _why(child),
            )
        pause = self._policy.pause_after(deaths)
        child.restart_at = now + pause
        self._say(f"{part.name} {how}. Restarting in {pause:g} s. Log: {part.log}")

    def _end(self, running: subprocess.Popen[bytes], grace: float) -> None:
        if self._signals.count < 2:
            running.terminate()
        until = time.monotonic() + grace
        while running.poll() is None and time.monotonic() < until and self._signals.count < 2:
            time.sleep(_TICK_SECONDS)
        if running.poll() is None:
            # The leader is not reaped yet, so the group's number cannot have gone to anybody else.
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()


def _give_way(process: int) -> None:
    """Makes a process nice, and the session that it leads: Linux may weigh sessions before it weighs the processes of
    each (`sched_autogroup_enabled`)."""
    niceness = min(os.getpriority(os.PRIO_PROCESS, 0) + NICENESS, 19)
    with suppress(OSError):  # it has ended, or the system is a stricter one: it works all the same
        os.setpriority(os.PRIO_PROCESS, process, niceness)
    for _ in range(_TRIES):
        try:
            Path(f"/proc/{process}/autogroup").write_text(str(niceness), encoding="ascii")
        except BlockingIOError:  # of all users but root, Linux takes one such change in a tenth of a second
            time.sleep(_BETWEEN_TRIES_SECONDS)
        except OSError:
            return
        else:
            return


def in_background(work: Callable[[], T]) -> "Future[T]":
    """Starts work in a thread that does not outlive the program; its result or error arrives in the future."""
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(work())
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits, not swallowed
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return outcome


def _why(child: _Child) -> str:
    """Why a part does not serve, as far as its log tells: the reason first, then what may help and the last lines."""
    part, lines = child.part, log_tail(child.part.log, since=child.log_from)
    reason = reason_in(lines)
    told = [f"Reason: {reason}"] if reason else []
    told += [part.advice] if part.advice else []
    if not lines:
        return "\n".join([*told, f"It wrote nothing to its log, {part.log}."])
    shown = [f"  {line[:_LONGEST_LINE]}" for line in lines[-_LAST_LINES:]]
    return "\n".join([*told, f"Last lines of {part.log}:", *shown])
