"""The topology of ``docker-compose.yml`` as the centre of a run: everything goes through nginx, over TLS."""

import json
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from random import Random

from postgresql_server import PostgreSQL

from tools.chaos.centre import Address
from tools.chaos.golden import NEW_AGENT, REPOSITORIES
from tools.chaos.journal import Journal
from tools.chaos.postgresql_stores import read_postgresql, unfinished
from tools.chaos.production_strikes import ProductionStrikes
from tools.chaos.repositories import read_repositories
from tools.chaos.repository_copies import RepositoryCopies
from tools.chaos.stalling_disk import StallingDisk
from tools.chaos.stores import Stores
from tools.production.ports import Ports
from tools.production.topology import AS_COMPOSE, Topology, real_postgresql, telling

VARIABLES = {"EDGEWRIGHT_SWEEP_SECONDS": "2", "EDGEWRIGHT_AGENT_IMAGE": NEW_AGENT}


class ChaosProductionCentre:
    """Implements ``ChaosCentre``.

    Args:
        folder: gets everything but the data of PostgreSQL; the tables are written there in the end.
        instead_of: one that was stopped; this one has its ports, and its PostgreSQL until that one is cleared up.
    """

    def __init__(self, folder: Path, *, instead_of: "ChaosProductionCentre | None" = None) -> None:
        self._folder = folder
        self._folder.mkdir(exist_ok=True)
        self._running = ExitStack()
        self._before = instead_of
        self._disk = StallingDisk(folder / "disk")
        self.ports: Ports = instead_of.ports if instead_of else Ports()

    @cached_property
    def postgresql(self) -> PostgreSQL:
        """Runs from the first time that it is asked for."""
        if self._before:
            return self._before.postgresql
        return self._running.enter_context(real_postgresql(self.ports, self._note))

    @cached_property
    def topology(self) -> Topology:
        """Not started."""
        instead = VARIABLES | self._disk.variables()
        made = Topology(self._folder, self.ports, self.postgresql, self._note, instead=instead, policy=AS_COMPOSE)
        self._running.callback(made.stop)
        return made

    @property
    def database(self) -> str:
        """Edgewright's own, of the server."""
        return self.topology.compose.environment("postgres")["POSTGRES_DB"]

    @property
    def address(self) -> Address:
        token = self.topology.token_file.read_text().strip()
        return Address(self.topology.url, token, self.ports.temporal_address, self.topology.ca)

    def start(self) -> None:
        with telling(self.topology):
            self.topology.start()

    def strikes(self, journal: Journal, random: Random) -> ProductionStrikes:
        repositories = RepositoryCopies(
            self.topology.home / REPOSITORIES, self._folder / "repository-copies", journal, random
        )
        return ProductionStrikes(self.topology, repositories, self._disk, journal, random)

    def unfinished(self) -> list[str]:
        return unfinished(self.postgresql, self.database)

    def stop(self) -> None:
        assert self.topology.failure is None, self.topology.failure
        self.topology.stop()

    def stores(self) -> Stores:
        tables = read_postgresql(self.postgresql, self.database)
        (self._folder / "tables.json").write_text(json.dumps(tables, default=str))
        return Stores(tables, read_repositories(self.topology.home / REPOSITORIES))

    def clear_up(self) -> None:
        self._running.close()

    def _note(self, line: str) -> None:
        with (self._folder / "said").open("a") as said:
            said.write(f"{line}\n")
