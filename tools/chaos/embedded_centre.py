"""One `edgewright up` on a fresh home, as the centre of a run."""

from pathlib import Path
from random import Random

from embedded import EmbeddedEdgewright

from tools.chaos.centre import Address
from tools.chaos.embedded_strikes import EmbeddedStrikes
from tools.chaos.golden import NEW_AGENT, REPOSITORIES
from tools.chaos.journal import Journal
from tools.chaos.repository_copies import RepositoryCopies
from tools.chaos.settling import unfinished
from tools.chaos.stalling_disk import StallingDisk
from tools.chaos.stores import Stores, read_stores
from tools.chaos.temporal_file import TemporalFile

VARIABLES = {
    "EDGEWRIGHT_DEMO": "0",
    "EDGEWRIGHT_SWEEP_SECONDS": "2",
    "EDGEWRIGHT_AGENT_IMAGE": NEW_AGENT,
}


class EmbeddedCentre:
    """Implements ``ChaosCentre``.

    Args:
        folder: gets ``home`` and copies of Temporal's file.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._disk = StallingDisk(folder / "disk")
        self.up = EmbeddedEdgewright(folder / "home", VARIABLES | self._disk.variables())

    @property
    def address(self) -> Address:
        endpoints = self.up.endpoints()
        token = (self.up.home / "admin-token").read_text().strip()
        return Address(str(endpoints["gateway"]), token, str(endpoints["temporal"]))

    def start(self) -> None:
        self.up.up()

    def strikes(self, journal: Journal, random: Random) -> EmbeddedStrikes:
        file = TemporalFile(self.up.home, self._folder / "copies")
        repositories = RepositoryCopies(
            self.up.home / REPOSITORIES, self._folder / "repository-copies", journal, random
        )
        return EmbeddedStrikes(self.up, file, repositories, self._disk, journal, random)

    def unfinished(self) -> list[str]:
        return unfinished(self.up.home)

    def stop(self) -> None:
        assert self.up.interrupt() == 0, self.up.said()

    def stores(self) -> Stores:
        return read_stores(self.up.home)

    def clear_up(self) -> None:
        self.up.clear_up()
