"""Runs of a bootstrap line, or of its uninstallation, that stand still or are killed before any of their requests."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgewright.bootstrap import render_uninstall

GOOD, DEAD = "reg.good", "reg.replaced"
ANCHOR = "ClusterRole/edgewright-anchor"
SECRETS = ("flux-secrets", "edgewright-agent")
READS = 5
"""Requests with which a run begins: version, rights, identity; where it stands then makes no difference."""
MADE = 19
"""The first request of which a run has made its anchor."""
REQUESTS = 34
"""How many requests a run makes on an empty cluster; a test counts them."""


@dataclass
class Register:
    """What a centre knows of one cluster: as ``EdgeRegistration`` and ``CredentialProof`` of the product have it."""

    held: tuple[str, str] | None = None
    spent: bool = False
    lost: bool = False
    """The answer to the next registration is a proxy's."""

    def decide(self, request: dict[str, Any]) -> tuple[int, dict[str, str]]:
        if request["authorization"] == f"Bearer {DEAD}":
            return 403, {"code": "token_replaced", "detail": "The registration token was replaced by a newer one."}
        offered = request["flux_secret"], request["agent_secret"]
        if self.spent and offered != self.held:
            return 403, {"code": "token_spent", "detail": "The registration token was used already."}
        self.held = offered
        if self.lost:
            self.lost, self.spent = False, True
            return 504, {"detail": "The proxy has given up."}
        return 200, {"state": "accepted", "short_code": "7KQ-2MX"}


class BootstrapRun:
    """One run, up to where it stands still, or is killed.

    Args:
        at: the number of the request before which it does.
        generation: of the cluster that the line is for.
    """

    def __init__(
        self,
        site: Any,
        token: str = GOOD,
        *,
        at: int = 0,
        then: str = "stand",
        generation: int = 1,
        uninstalls: bool = False,
    ) -> None:
        self._gate: Path = site.folder / f"gate-{time.monotonic_ns()}"
        gated = {"GATE_FILE": str(self._gate), "GATE_AT": str(at), "GATE": then}
        self._running = subprocess.Popen(
            [*site.shell, "-s", "--", "--yes"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=site.environment(**gated),
            start_new_session=True,
            text=True,
        )
        assert self._running.stdin
        script = render_uninstall(site.wanted) if uninstalls else site.render(token=token, generation=generation)
        self._running.stdin.write(script)
        self._running.stdin.close()
        self._running.stdin = None
        site.runs.append(self)

    def abandon(self) -> None:
        """Whatever it waits for."""
        if self._running.poll() is None:
            os.killpg(self._running.pid, signal.SIGKILL)
        self._running.wait()

    def await_gate(self) -> bool:
        """Whether it stands still; False: it has ended before."""
        while not Path(f"{self._gate}.reached").exists():
            if self._running.poll() is not None:
                return False
            time.sleep(0.005)
        return True

    def end(self) -> tuple[int, str]:
        """Lets it go on; its exit code, and all that it has said."""
        Path(f"{self._gate}.open").touch()
        said = "".join(self._running.communicate(timeout=30))
        return self._running.returncode, said

    @property
    def requests(self) -> int:
        return self._gate.stat().st_size


def held_on(site: Any) -> tuple[str, str] | None:
    """The credentials that the edge lives on."""
    found = [site.secret(name) for name in SECRETS]
    return None if None in found else (found[0]["password"], found[1]["password"])


def is_attached(site: Any, register: Register) -> bool:
    there = {ANCHOR, "Namespace/edgewright", "Kustomization/edgewright/self-link"}
    return there <= site.cluster["objects"].keys() and held_on(site) == register.held is not None
