"""The real agent, as a process of this machine, under exactly its ServiceAccount's token."""

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import psutil
from free_ports import free_port

from edge_cluster.cluster import Cluster
from edge_cluster.kubectl import surroundings
from edge_cluster.pods import pod

NAMESPACE = "edgewright"
ACCOUNT = "edgewright-agent"
PROGRAM = [sys.executable, "-P", "-m", "edgewright.agent"]
LOOK_SECONDS = 1


class AgentProcess:
    """One agent, whose rights are there before it starts. It stays away when it is killed: no kubelet is here.

    Args:
        sealing_url: of sealed-secrets; None: nothing listens there.
        look_seconds: between two looks at the cluster.
        name: of its log.
        program: what runs in the pod.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        sealing_url: str | None = None,
        look_seconds: int = LOOK_SECONDS,
        name: str = "agent",
        program: Sequence[str] = PROGRAM,
    ) -> None:
        self._cluster = cluster
        self._look_seconds = look_seconds
        self._program = program
        self._sealing_url = sealing_url or f"http://127.0.0.1:{free_port()}"
        self._log = cluster.folder / "logs" / f"{name}.log"
        self._running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns at once; what the agent finds is told in its log, which goes on where another has ended."""
        assert self._running is None
        started = pod(self._cluster, NAMESPACE, ACCOUNT, self._program)
        variables = {
            "EDGEWRIGHT_AGENT_SEALING_URL": self._sealing_url,
            "EDGEWRIGHT_AGENT_LOOK_SECONDS": str(self._look_seconds),
            "HTTPS_PROXY": f"http://127.0.0.1:{free_port()}",  # nobody is there: Kubernetes is reached without it
            "NO_PROXY": "localhost",  # and so is a centre with TLS
        }
        with self._log.open("ab") as log:
            self._running = subprocess.Popen(
                [str(word) for word in started.command],
                env={**surroundings(), **started.environment, **variables},
                cwd=self._cluster.folder,
                stdin=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )

    def log(self) -> list[dict[str, Any]]:
        """What it has logged; a last line that is under way is left out."""
        lines = self._log.read_text().splitlines(keepends=True) if self._log.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def states(self, matter: str) -> list[str]:
        """What it has logged of a matter, such as ``centre``, in order."""
        return [str(line["state"]) for line in self.log() if line["event"] == matter]

    @property
    def resident(self) -> int:
        """Bytes."""
        assert self._running
        return int(psutil.Process(self._running.pid).memory_info().rss)

    def kill(self) -> None:
        """kill -9."""
        running = self._end()
        running.kill()
        running.wait()

    def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        running = self._end()
        running.terminate()
        return running.wait(timeout=60)

    def clear_up(self) -> None:
        """Leaves no process behind, whatever the test did."""
        if self._running is not None:
            self.kill()

    def _end(self) -> "subprocess.Popen[bytes]":
        assert self._running
        running, self._running = self._running, None
        return running
