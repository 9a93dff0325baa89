"""A home on which nothing runs, and what a backup command does with it, in this process."""

import asyncio
import hashlib
import os
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import UUID

from database_stores import Store
from embedded import PROGRAM

from edgewright.adapters.database.engine.engine import open_database
from edgewright.adapters.git.bare import BareGitServer
from edgewright.cli.backup import backup
from edgewright.cli.backup_manifest import checked_manifest
from edgewright.cli.initialise import initialise_storage
from edgewright.cli.restore import restore, restore_backup
from edgewright.ports.git_server import CommitId, CommitMessage
from edgewright.settings import Settings


@dataclass
class StoppedHome:
    """``folder``: the home. ``backups``: where backups are kept."""

    folder: Path
    backups: Path

    @property
    def settings(self) -> Settings:
        return Settings(home=self.folder)

    @property
    def git(self) -> BareGitServer:
        return BareGitServer(self.settings.effective_git_root)

    async def make(self) -> None:
        self.folder.mkdir(mode=0o700)
        await initialise_storage(self.settings)

    @asynccontextmanager
    async def store(self) -> AsyncIterator[Store]:
        async with open_database(self.settings.effective_database_url) as database:
            yield Store.on(database)

    def create(self, name: str = "press-shop") -> UUID:
        """A cluster with a populated repository."""

        async def created() -> UUID:
            async with self.store() as store:
                return await store.commissioned(name)

        cluster = asyncio.run(created())
        self.git.create_repository(cluster)
        self.commit(cluster, "first")
        return cluster

    def commit(
        self, cluster: UUID, content: str, *, trailers: Mapping[str, str] | None = None, at: datetime | None = None
    ) -> CommitId:
        """``at``: as if it had been made then; None: now."""
        message = CommitMessage(subject="Change", actor="test", trailers=tuple((trailers or {}).items()))
        files = {"edo/file": content.encode()}
        git = self.git if at is None else BareGitServer(self.git.root, clock=at.timestamp)
        return git.commit(cluster, files, message, expected_head=git.head(cluster))

    def back_up(self) -> Path:
        return backup(self.settings, self.backups, without_database=False)

    def restore(self, made: Path, *, keep_repositories: bool = False) -> None:
        restore(self.settings, made, keep_repositories=keep_repositories)

    def put_in_place(self, made: Path) -> None:
        """The part of a restore that follows the checks."""
        restore_backup(self.settings, made, checked_manifest(made))

    def content(self) -> dict[str, str]:
        """Hash of every file, so that a change of any of them shows; without the lock files."""
        files = [path for path in self.folder.rglob("*") if path.is_file() and path.name != "lock"]
        return {
            str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in files
            if not path.name.endswith((".gateway", "-shm", "-wal"))
        }

    def environment(self, **variables: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("EDGEWRIGHT_")}
        ports = {f"EDGEWRIGHT_{name}_PORT": "0" for name in ("GATEWAY", "TEMPORAL", "TEMPORAL_UI")}
        contexts = {"EDGEWRIGHT_CONFIG": str(self.folder.parent / "config")}
        return {**kept, **ports, **contexts, "EDGEWRIGHT_HOME": str(self.folder), **variables}

    def command(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """As somebody types it."""
        return subprocess.run(
            [*PROGRAM, *arguments],
            check=False,
            env=self.environment(**variables),
            capture_output=True,
            text=True,
            timeout=90,
        )
