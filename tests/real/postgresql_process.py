"""The processes of a PostgreSQL server: started, ended in peace, killed, held still, started again."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from debian import library_path
from workshop import ComponentMissing

READY_SECONDS = 120.0
"""A server that was killed replays its log first."""
STOP_SECONDS = 30.0


class ServerProcess:
    """The server of one data folder.

    Args:
        folder: holds ``data``; gets the socket and the log.
        options: settings of the server.
        run_as: arguments of ``Popen`` that say who it runs as.
    """

    def __init__(
        self, folder: Path, programs: Path, port: int, options: Mapping[str, str], *, run_as: Mapping[str, Any]
    ) -> None:
        self._folder, self._programs, self._port = folder, programs, port
        self._command = [str(programs / "postgres"), "-D", str(folder / "data"), "-p", str(port)]
        for name, value in options.items():
            self._command += ["-c", f"{name}={value}"]
        self._run_as = run_as
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The process ID of the postmaster; None: it does not run."""
        running = self._process
        return running.pid if running is not None and running.poll() is None else None

    def start(self) -> None:
        """Returns when it takes connections.

        Raises:
            ComponentMissing: it did not come up; the text has the end of its log.
        """
        with (self._folder / "postgresql.log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                env=surroundings(self._programs),
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for whoever started us, who ends the server last
                **self._run_as,
            )
        self._wait_until_ready()

    def stop(self) -> None:
        """Ends sessions, and loses nothing."""
        if self._process is None:
            return
        self.thaw()
        self._process.send_signal(signal.SIGINT)  # its "fast" stop
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def kill(self) -> int:
        """kill -9 of the whole family, as when its container ends; returns how many processes died."""
        if self.pid is not None:
            os.kill(self.pid, signal.SIGSTOP)  # nobody is born behind our back
        family = self._family()
        for process in family:
            _send(process, signal.SIGKILL)
        if self._process is not None:
            self._process.wait(STOP_SECONDS)
        _, alive = psutil.wait_procs(family, timeout=STOP_SECONDS)
        assert not alive, "killed processes have not died"
        return len(family)

    def freeze(self) -> None:
        """Nothing of it moves: the kernel still takes connections, and nobody answers."""
        for process in self._family():
            _send(process, signal.SIGSTOP)

    def thaw(self) -> None:
        """It goes on where it was."""
        for process in self._family():
            _send(process, signal.SIGCONT)

    def _family(self) -> list[psutil.Process]:
        """The postmaster first: without it nobody is born."""
        if self.pid is None:
            return []
        try:
            postmaster = psutil.Process(self.pid)
            return [postmaster, *postmaster.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def _wait_until_ready(self) -> None:
        asked = [str(self._programs / "pg_isready"), "--quiet", f"--host={self._folder}", f"--port={self._port}"]
        deadline = time.monotonic() + READY_SECONDS
        while subprocess.run(asked, env=surroundings(self._programs), timeout=30, check=False).returncode != 0:
            if self.pid is None or time.monotonic() > deadline:
                log = (self._folder / "postgresql.log").read_text(errors="replace")
                raise ComponentMissing(f"PostgreSQL did not come up:\n{log[-2000:]}")
            time.sleep(0.05)


def surroundings(programs: Path) -> dict[str, str]:
    """Nothing of this shell's settings for PostgreSQL; the libraries that came with the programs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    tree = programs.parents[4] if len(programs.parents) > 4 else Path("/")
    if tree != Path("/"):
        kept["LD_LIBRARY_PATH"] = library_path(tree)
    return kept | {"LC_ALL": "C.UTF-8", "TZ": "UTC"}


def _send(process: psutil.Process, number: signal.Signals) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)
