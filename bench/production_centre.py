"""The topology of docker-compose.yml on this machine, for measuring: everything goes through nginx, over TLS."""

import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from bench.running_centre import counted_repositories
from tools.production.topology import Topology, running


class ProductionCentre:
    """Where it listens, what opens it, and its processes."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self.url = topology.url
        self.verify: ssl.SSLContext | bool = ssl.create_default_context(cafile=topology.ca)

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._topology.token_file.read_text().strip()}"}

    def counted(self) -> tuple[int, int]:
        """Repositories of clusters on disk, and accounts in the database."""
        database = self._topology.compose.environment("postgres")["POSTGRES_DB"]

        def asked(statement: str) -> str:
            return self._topology.postgresql.sql(statement, database=database)

        known = set(asked("SELECT uuid FROM clusters").split())
        return counted_repositories(self._topology.home, known), int(asked("SELECT count(*) FROM accounts"))

    def megabytes(self) -> dict[str, float]:
        """Memory that each kind of process of ours holds alone, and its share of what several hold (PSS)."""
        kinds = {"gateway": self._topology.gateways, "worker": self._topology.workers}
        return {kind: sum(map(self._weight, names)) for kind, names in kinds.items()}

    def _weight(self, name: str) -> float:
        weight: float = psutil.Process(self._topology.supervisor.pid_of(name)).memory_full_info().pss / 1e6
        return weight


@contextmanager
def production_centre() -> Iterator[ProductionCentre]:
    """One in a temporary folder and on free ports; it is stopped and removed at the end."""
    with (
        tempfile.TemporaryDirectory(prefix="edgewright-bench-") as folder,
        running(Path(folder), _silent) as topology,
    ):
        yield ProductionCentre(topology)


def _silent(_line: str) -> None:
    """The table is all that is printed."""
