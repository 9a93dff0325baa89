"""The commands of ``docs/backup.md`` for PostgreSQL, as they stand there, with other hosts and paths."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from postgresql_process import surroundings
from postgresql_server import OWNER

from tools.production.compose import CHECKOUT
from tools.production.topology import Topology

SECTION = re.compile(r"^## PostgreSQL\n(.*?)^## ", re.MULTILINE | re.DOTALL)
BLOCK = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
HOST = "db.example.com"
BACKUPS = "/srv/backups"
A_BACKUP = re.compile(rf"{BACKUPS}/edgewright-\S+")
PROGRAM = "./bin/edgewright"
LONGEST = 300


class DocumentedCommands:
    """Runs them on the machine of an operator, which has PostgreSQL's tools and Temporal's.

    Args:
        folder: where he is; made here.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "bin").mkdir(parents=True)
        (folder / "bin" / "temporal").symlink_to(Path(sys.executable).parent / "temporal")
        [section] = SECTION.findall((CHECKOUT / "docs" / "backup.md").read_text("utf-8"))
        self._lines = [line for block in BLOCK.findall(section) for line in block.splitlines()]

    @property
    def backups(self) -> Path:
        return self._folder / "backups"

    def run(
        self, beginning: str, topology: Topology, *, backup: Path | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """The one command that begins like this.

        Args:
            backup: the folder to be restored.
        """
        [line] = [line for line in self._lines if line.startswith(beginning)]
        server = topology.postgresql
        line = A_BACKUP.sub(str(backup), line) if backup else line
        line = line.replace(HOST, f"127.0.0.1:{server.port}").replace(BACKUPS, str(self.backups))
        line = line.replace(PROGRAM, str(CHECKOUT / "bin" / "edgewright"))
        known = self._folder / ".pgpass"
        known.touch(mode=0o600)
        known.write_text(f"127.0.0.1:{server.port}:*:{OWNER}:{server.password}\n")
        return subprocess.run(
            ["sh", "-euc", line],
            env=self._environment(topology),
            cwd=self._folder,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )

    def _environment(self, topology: Topology) -> Mapping[str, str]:
        """What the services have, and where the tools and the servers are."""
        programs = topology.postgresql.programs
        kept = surroundings(programs)
        path = os.pathsep.join([str(self._folder / "bin"), str(programs), kept["PATH"]])
        settings = {name: value for name, value in kept.items() if not name.startswith("EDGEWRIGHT_")}
        return {
            **settings,
            **topology.compose.environment("init"),
            "PATH": path,
            "HOME": str(self._folder),
            "TEMPORAL_ADDRESS": topology.ports.temporal_address,
        }
