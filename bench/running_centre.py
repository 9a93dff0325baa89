"""A whole embedded Edgewright in a temporary home, for measuring: started, killed, started again, weighed."""

import json
import os
import re
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from uuid import UUID

import psutil

START_SECONDS = 120.0
OURS = {"gateway": "-m api", "worker": "-m worker"}
PARTS = OURS | {"temporal": "server start-dev"}
HIGH_WATER = re.compile(r"VmHWM:\s+(\d+) kB")


class RunningCentre:
    """Where it listens, what opens it, and its processes.

    Args:
        code: the files of the version that runs, with the libraries of this one; None: this one.
        settings: variables of the environment beside those of every measurement.
    """

    def __init__(
        self, home: Path, code: Path | None = None, settings: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        self.home = home
        self._code = code
        self._settings = settings
        self.url = ""
        self.token = ""
        self.temporal = ""
        self.verify: ssl.SSLContext | bool = True
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def start(self, patience: float = START_SECONDS) -> None:
        """Starts `edgewright up`; returns when all of it is ready, at the latest after ``patience`` seconds."""
        variables = {f"EDGEWRIGHT_{name}_PORT": "0" for name in ("GATEWAY", "TEMPORAL", "TEMPORAL_UI")}
        variables |= {"EDGEWRIGHT_HOME": str(self.home), "EDGEWRIGHT_DEMO": "0", **self._settings}
        if self._code is not None:
            variables["PYTHONPATH"] = str(self._code)
        with (self.home.parent / "up.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", "from edgewright.cli.entry import main; main()", "up"],
                env=os.environ | variables,
                cwd=self._code,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        endpoints, until = self.home / "endpoints.json", time.monotonic() + patience
        while not (endpoints.exists() and json.loads(endpoints.read_text())["pid"] == self._process.pid):
            if self._process.poll() is not None or time.monotonic() > until:
                raise SystemExit("`edgewright up` did not start; run it by hand to see why")
            time.sleep(0.02)
        told = json.loads(endpoints.read_text())
        self.url, self.temporal = told["gateway"], told["temporal"]
        self.token = (self.home / "admin-token").read_text().strip()

    def kill(self) -> None:
        """Every process of it, by -9 at once."""
        doomed = self.processes()
        for process in doomed:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(doomed, timeout=30)
        if self._process is not None:
            self._process.wait(30)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            self._process.wait(60)

    def counted(self) -> tuple[int, int]:
        """Repositories of clusters on disk, shared ones aside, and accounts in the database."""
        with closing(sqlite3.connect(f"file:{self.home / 'edgewright.db'}?mode=ro", uri=True)) as database:
            (accounts,) = database.execute("SELECT count(*) FROM accounts").fetchone()
            known = {str(UUID(row[0])) for row in database.execute("SELECT uuid FROM clusters")}
        return counted_repositories(self.home, known), accounts

    def megabytes(self) -> dict[str, float]:
        """Memory that each part alone holds, and its share of what several hold (PSS)."""
        return self._of_parts(lambda process: process.memory_full_info().pss / 1e6)

    def megabytes_of_git(self) -> float:
        """The most that any git of the gateway, of those that run now, has held at once; 0: none runs."""
        held = 0.0
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):
                if OURS["gateway"] in " ".join(process.cmdline()):
                    children = process.children(recursive=True)
                    held = max([held, *(most_held(child) for child in children if child.name().startswith("git"))])
        return held

    def processor_seconds(self) -> dict[str, float]:
        """Processor time that each part has used since it was started."""
        return self._of_parts(lambda process: sum(process.cpu_times()[:2]))

    def _of_parts(self, measured: Callable[[psutil.Process], float]) -> dict[str, float]:
        found: dict[str, float] = {}
        for process in self.processes():
            with suppress(psutil.NoSuchProcess):  # git's come and go
                command = " ".join(process.cmdline())
                for name, part in PARTS.items():
                    if part in command:
                        found[name] = found.get(name, 0.0) + measured(process)
        return found

    def processes(self) -> list[psutil.Process]:
        """`edgewright up` and all that it has started; none before the first start."""
        if self._process is None:
            return []
        up = psutil.Process(self._process.pid)
        return [up, *up.children(recursive=True)]


def most_held(process: psutil.Process) -> float:
    """The most memory that a process has held at once, in megabytes; 0: it has just ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        found = HIGH_WATER.search(Path(f"/proc/{process.pid}/status").read_text())
        return int(found[1]) * 1024 / 1e6 if found else 0.0
    return 0.0


def counted_repositories(home: Path, known: Set[str]) -> int:
    """Those in service of the clusters that are known, by UUID."""
    return sum(folder.stem in known for folder in (home / "repositories").glob("*.git"))


@contextmanager
def running_centre(
    code: Path | None = None, *, settings: Mapping[str, str] = MappingProxyType({})
) -> Iterator[RunningCentre]:
    """One on a fresh home and free ports; it is stopped and its home removed at the end. ``code``, ``settings``: see
    there."""
    with tempfile.TemporaryDirectory(prefix="edgewright-bench-") as folder:
        home = Path(folder) / "home"
        centre = RunningCentre(home, code, settings)
        centre.start()
        try:
            yield centre
        finally:
            centre.stop()
