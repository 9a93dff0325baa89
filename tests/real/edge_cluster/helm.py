"""The real helm, as one user of one cluster, with a home of its own."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from edge_cluster.kubectl import surroundings

DEADLINE = 300  # seconds


@dataclass(frozen=True)
class Helm:
    """One user of one cluster.

    Args:
        program: the binary.
        config: the user's kubeconfig.
        folder: for what helm keeps; nothing of this machine's own repositories is seen.
        environment: more variables.
    """

    program: Path
    config: Path
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: str | Path) -> str:
        """What helm prints.

        Raises:
            RuntimeError: it failed; the text is what it said.
        """
        done = self.try_(*arguments)
        if done.returncode != 0:
            raise RuntimeError(f"helm {' '.join(map(str, arguments))}: {done.stdout}{done.stderr}")
        return done.stdout

    def try_(self, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
        """The same, whatever comes of it."""
        homes = {f"HELM_{kind}_HOME": str(self.folder / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        return subprocess.run(
            [self.program, *arguments],
            env={**surroundings(), **homes, "KUBECONFIG": str(self.config), **self.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=False,
        )
