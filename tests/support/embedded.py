"""A real `edgewright up` on a home of its own, with every port picked freely."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
from loopback import PLAIN
from supervised import eventually, living

PROGRAM = [sys.executable, "-c", "from edgewright.cli.entry import main; main()"]
START_SECONDS = 150.0
SWEEP_SECONDS = "5"
"""Often enough to wait for a sweep; more often, sweeps take most of what an idle centre uses."""


@dataclass
class EmbeddedEdgewright:
    """One home. ``variables`` are set on top of free ports."""

    home: Path
    variables: dict[str, str] = field(default_factory=dict)
    running: subprocess.Popen[str] | None = None

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("EDGEWRIGHT_")}
        ports = {f"EDGEWRIGHT_{name}_PORT": "0" for name in ("GATEWAY", "TEMPORAL", "TEMPORAL_UI")}
        contexts = {"EDGEWRIGHT_CONFIG": str(self.home.parent / "config")}
        return {**kept, **ports, **contexts, "EDGEWRIGHT_HOME": str(self.home), **self.variables}

    @property
    def within(self) -> list[str]:
        """What a command begins with that is to see the home as the centre does."""
        return []

    @property
    def up_arguments(self) -> Sequence[str]:
        """What is typed after `up`."""
        return ()

    def begin(self) -> None:
        """Types `edgewright up`; what it says goes to a file, as a person would redirect it."""
        with (self.home.parent / f"{self.home.name}.said").open("w") as said:
            self.running = subprocess.Popen(
                [*self.within, *PROGRAM, "up", *self.up_arguments],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )

    def up(self) -> None:
        """The same, and waits until everything runs."""
        self.begin()
        eventually(lambda: "Press Ctrl-C to stop." in self.said() or self.ended(), seconds=START_SECONDS)
        assert not self.ended(), f"{self.said()}\n{self.logs()}"

    def ended(self) -> bool:
        return self.running is None or self.running.poll() is not None

    def said(self) -> str:
        return (self.home.parent / f"{self.home.name}.said").read_text()

    def logs(self) -> str:
        return "\n".join(f"--- {log.name}\n{log.read_text()[-3000:]}" for log in (self.home / "logs").glob("*.log"))

    def interrupt(self) -> int:
        """Ctrl-C; returns the exit code."""
        assert self.running
        self.running.send_signal(signal.SIGINT)
        return self.running.wait(timeout=60)

    def kill(self) -> None:
        """kill -9 of `up` alone: its children live on."""
        assert self.running
        self.running.kill()
        self.running.wait(timeout=10)

    def kill_everything(self) -> None:
        """kill -9 of `up` and of all that it has started, at the same moment."""
        assert self.running
        children = self.children()
        for pid in (self.running.pid, *children.values()):
            os.kill(pid, signal.SIGKILL)
        self.running.wait(timeout=10)
        eventually(lambda: not [pid for pid in children.values() if living(pid)])

    def replace(self, part: str) -> None:
        """kill -9 of one part; returns when another process plays it, and everything answers."""
        before = self.children()[part]
        os.kill(before, signal.SIGKILL)
        eventually(lambda: self.children().get(part, before) != before, seconds=30)
        eventually(self.answers)

    def answers(self) -> bool:
        """Whether the gateway answers, and misses nothing."""
        host, _, port = str(self.endpoints()["gateway"]).removeprefix("http://").rpartition(":")
        try:
            with socket.create_connection((host, int(port)), timeout=1):
                answer = self.api("GET", "/readyz")
                return answer.status_code == 200 and not answer.json().get("degraded", [])
        except (OSError, httpx.TransportError):
            return False

    def clear_up(self) -> None:
        """Leaves no process behind, whatever the test did."""
        if self.running and self.running.poll() is None:
            self.running.terminate()
            try:
                self.running.wait(timeout=30)
            except subprocess.TimeoutExpired:
                self.running.kill()
        for pid in self.children().values():
            psutil.Process(pid).kill()

    def children(self) -> dict[str, int]:
        """The parts on record that live, by name."""
        from edgewright.cli.ledger import ProcessLedger  # noqa: PLC0415 - of the product, not of this module

        return ProcessLedger(self.home).living()

    def command(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs another command of the command line on the same home."""
        return subprocess.run(
            [*PROGRAM, *arguments],
            check=False,
            env={**self.environment, **variables},
            capture_output=True,
            text=True,
            timeout=90,
        )

    def endpoints(self) -> dict[str, Any]:
        content = json.loads((self.home / "endpoints.json").read_text())
        assert isinstance(content, dict)
        return content

    def api(self, method: str, path: str, **options: Any) -> httpx.Response:
        """One call to the gateway, with the admin token."""
        token = (self.home / "admin-token").read_text().strip()
        url = f"{self.endpoints()['gateway']}{path}"
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.request(method, url, headers=headers, timeout=30, **PLAIN, **options)

    def is_ready(self, name: str) -> bool:
        """Whether the cluster with a name is ready."""
        items = self.api("GET", "/v1/cluster", params={"name": name}).json()["items"]
        return any(item["name"] == name and item["ready"] for item in items)

    def create(self, name: str) -> str:
        """Creates a cluster; returns its UUID."""
        answer = self.api("POST", "/v1/cluster", json={"name": name})
        assert answer.status_code == 201, answer.text
        return str(answer.json()["uuid"])
