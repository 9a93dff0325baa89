"""What a year leaves behind: rows and bytes of the database, of the repository, of Temporal's file, and memory."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from git import Repo

GROWING = frozenset({"applied_verbs", "changes", "credentials", "events", "registration_tokens", "staged_changes"})
"""Tables that grow with what is done to a cluster; docs/scaling.md says how much. No other table may.
``staged_changes`` grows for a day, ``applied_verbs`` for ninety, and no life here takes as long."""


@dataclass(frozen=True)
class RepositorySize:
    """A bare repository's commits on ``main``, loose objects, packs, and bytes on disk (blocks, all files)."""

    commits: int
    loose: int
    packs: int
    size: int


@dataclass(frozen=True)
class Year:
    """The state of everything at the end of a year.

    Args:
        events: of Temporal, in all runs of the cluster.
        runs: that have continued as new.
        longest_run: events of the longest run that ended this year.
        largest_handover: bytes that a run gave to the next one, at most, this year.
        rows: by table, of the whole database.
        table_bytes: by table, indexes included.
        database, temporal: bytes of the files.
        worker: megabytes.
    """

    number: int
    events: int
    runs: int
    longest_run: int
    largest_handover: int
    rows: Mapping[str, int]
    table_bytes: Mapping[str, int]
    database: int
    temporal: int
    worker: float
    repository: RepositorySize


def rows_of(database: Path) -> dict[str, int]:
    """Rows by table."""
    with closing(_read_only(database)) as connection:
        named = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        return {name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for (name,) in named}


def bytes_of(database: Path) -> dict[str, int]:
    """Bytes by table, those of its indexes included; empty where SQLite was built without its table of sizes."""
    with closing(_read_only(database)) as connection, suppress(sqlite3.OperationalError):
        told = connection.execute(
            "SELECT tbl_name, sum(pgsize) FROM dbstat JOIN sqlite_master USING (name) GROUP BY tbl_name"
        )
        return dict(told.fetchall())
    return {}


def file_bytes(file: Path) -> int:
    """The bytes of a file of SQLite and of its write-ahead log."""
    return sum(part.stat().st_size for part in file.parent.glob(f"{file.name}*"))


def repository_of(folder: Path) -> RepositorySize:
    """Counted by the git program and on the disk."""
    with Repo(folder) as repo:
        counted = dict(line.split(": ") for line in repo.git.count_objects("-v").splitlines())
        commits = repo.commit("main").count()
    size = sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))
    return RepositorySize(commits, int(counted["count"]), int(counted["packs"]), size)


def commits_of(folder: Path) -> set[str]:
    """All commits of ``main``."""
    with Repo(folder) as repo:
        return {commit.hexsha for commit in repo.iter_commits("main")}


def _read_only(database: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{database}?mode=ro", uri=True)
