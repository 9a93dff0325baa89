"""A whole embedded Edgewright in a temporary home, for measuring."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

START_SECONDS = 120.0


@dataclass(frozen=True)
class RunningCentre:
    """Where it listens and what opens it."""

    url: str
    token: str


@contextmanager
def running_centre() -> Iterator[RunningCentre]:
    """Starts `edgewright up` on a fresh home and free ports; stops it and removes the home."""
    with tempfile.TemporaryDirectory(prefix="edgewright-bench-") as folder:
        home = Path(folder) / "home"
        variables = {f"EDGEWRIGHT_{name}_PORT": "0" for name in ("GATEWAY", "TEMPORAL", "TEMPORAL_UI")}
        variables |= {"EDGEWRIGHT_HOME": str(home), "EDGEWRIGHT_DEMO": "0"}
        with (Path(folder) / "up.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-c", "from edgewright.cli.main import main; main()", "up"],
                env=os.environ | variables,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            try:
                yield _when_ready(home, process)
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(60)


def _when_ready(home: Path, process: "subprocess.Popen[bytes]") -> RunningCentre:
    until = time.monotonic() + START_SECONDS
    endpoints = home / "endpoints.json"
    while not endpoints.exists():
        if process.poll() is not None or time.monotonic() > until:
            raise SystemExit("`edgewright up` did not start; run it by hand to see why")
        time.sleep(0.1)
    gateway = json.loads(endpoints.read_text())["gateway"]
    return RunningCentre(url=gateway, token=(home / "admin-token").read_text().strip())
