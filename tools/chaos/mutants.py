"""Broken promises, planted into copies of stores that keep them all: the checker has to name each."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from tools.chaos.edge_keys import EdgeKey
from tools.chaos.golden import DATABASE, REPOSITORIES
from tools.chaos.journal import JournalLine
from tools.chaos.repositories import CheckedRepository

Plant = Callable[["Home"], None]


@dataclass(frozen=True)
class Mutant:
    """``caught_as``: the name of the violation that has to be among those found."""

    name: str
    caught_as: str
    plant: Plant


@dataclass(frozen=True)
class Home:
    """A copy of a home in which nothing runs, and what was asked of it."""

    path: Path
    lines: Sequence[JournalLine] = field(repr=False)
    keys: Sequence[EdgeKey] = field(repr=False)

    @contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        """Without the triggers and the index that refuse what mutants do."""
        with closing(sqlite3.connect(self.path / DATABASE)) as connection, connection:
            for verb in ("update", "delete"):
                connection.execute(f"DROP TRIGGER IF EXISTS events_refuse_{verb}")
            connection.execute("DROP INDEX IF EXISTS uq_clusters_name_key")
            yield connection

    def repository(self, cluster: str, *, archived: bool = False) -> Path:
        """The folder of a cluster's repository."""
        root = self.path / REPOSITORIES
        return next(root.glob(f"archive/{cluster}-*.git")) if archived else root / f"{cluster}.git"

    def open_repositories(self, where: str) -> list[CheckedRepository]:
        """Those in service, of all clusters that are ``where``."""
        with self.database() as database:
            found = database.execute(f"SELECT uuid FROM clusters WHERE {where} ORDER BY created_at").fetchall()
        return [CheckedRepository(str(UUID(uuid)), False, self.repository(str(UUID(uuid)))) for (uuid,) in found]

    def cluster(self, where: str) -> str:
        """The first cluster for which a condition on its row holds."""
        with self.database() as database:
            found = database.execute(f"SELECT uuid FROM clusters WHERE {where} ORDER BY created_at").fetchone()
        assert found, f"the run has left no cluster that is {where}"
        return str(UUID(found[0]))


def copy_home(
    home: Path, target: Path, lines: Sequence[JournalLine], keys: Sequence[EdgeKey], *, repositories: bool = True
) -> Home:
    """The stores of a home, without what is Temporal's and the logs."""
    target.mkdir()
    shutil.copyfile(home / DATABASE, target / DATABASE)
    if repositories:
        shutil.copytree(home / REPOSITORIES, target / REPOSITORIES)
    return Home(target, lines, keys)


PRESENT = "closed_at IS NULL AND desired = 'present'"
REMOVED = "closed_at IS NULL AND desired = 'removed'"
GONE = (
    "closed_at IS NOT NULL AND EXISTS (SELECT 1 FROM events WHERE cluster = uuid AND kind = 'phase.changed' "
    "AND (detail LIKE '%\"AwaitingBootstrap\"%' OR detail LIKE '%\"Active\"%'))"
)
"""Deleted after it was ready."""
SECRETIVE = f"{PRESENT} AND EXISTS (SELECT 1 FROM events WHERE cluster = uuid AND kind = 'secret.put')"
PUSHED = f"{PRESENT} AND EXISTS (SELECT 1 FROM events WHERE cluster = uuid AND kind = 'git.pushed')"
UPGRADED = "EXISTS (SELECT 1 FROM events WHERE cluster = uuid AND kind = 'upgrade.begun')"
MOVED = "closed_at IS NULL AND must_reenter != '[]'"
