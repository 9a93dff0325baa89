"""What a backup holds, who can read it, and that it is there whole or not at all."""

import asyncio
import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from uuid import UUID

import pytest
from database_stores import Store
from embedded import PROGRAM
from stopped_home import StoppedHome
from supervised import eventually

from edgewright.adapters.database.engine.engine import open_database
from edgewright.adapters.database.engine.sqlite_copy import copy_sqlite
from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.git.bundles import read_bundle
from edgewright.cli import backup as copying
from edgewright.cli.backup_manifest import checked_manifest
from edgewright.cli.failures import CliError
from edgewright.errors import EdgewrightError

pytestmark = pytest.mark.timeout(300)


def test_a_backup_holds_database_repositories_and_token_for_its_owner_only(home: StoppedHome) -> None:
    serving, retired, empty = home.create("serving"), home.create("retired"), UUID(int=7)
    home.git.archive(retired)
    home.git.create_repository(empty)
    made = home.back_up()
    heads = {kept.place.split("-")[0]: kept.head for kept in checked_manifest(made).repositories}
    assert heads[str(serving).split("-")[0]] == home.git.head(serving)
    assert heads[f"archive/{str(retired).split('-')[0]}"]
    assert heads[str(empty).split("-")[0]] is None
    assert (made / "admin-token").read_bytes() == (home.folder / "admin-token").read_bytes()
    modes = {path.stat().st_mode & 0o777 for path in made.rglob("*")} | {made.stat().st_mode & 0o777}
    assert not any(mode & 0o077 for mode in modes), "others can read it"


def test_no_repository_is_behind_the_database_while_others_write(
    home: StoppedHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, stop, rounds = home.create(), threading.Event(), list[str]()

    async def write() -> None:
        """What is committed is told to the database after that, as every activity does."""
        async with home.store() as store:
            while not stop.is_set():
                commit = await asyncio.to_thread(home.commit, cluster, f"round {len(rounds)}")
                await store.write(cluster, values={"commit": commit})
                rounds.append(commit)

    def await_rounds(more: int) -> None:
        before = len(rounds)
        eventually(lambda: len(rounds) > before + more, seconds=60)

    def copy_while_they_write(source: Path, target: Path) -> None:
        """A commit before the copy and one after it, whatever the scheduler does."""
        await_rounds(1)
        copy_sqlite(source, target)
        await_rounds(1)

    monkeypatch.setattr(copying, "copy_sqlite", copy_while_they_write)
    writer = threading.Thread(target=lambda: asyncio.run(write()), daemon=True)
    writer.start()
    try:
        for number in range(3):
            await_rounds(3)
            made = home.back_up()
            told, head = asyncio.run(commit_in_the_copy(made, cluster)), restored_head(made, tmp_path / f"{number}")
            assert head.is_ancestor(cluster, told, head.head(cluster) or "")
    finally:
        stop.set()
        writer.join(60)


async def commit_in_the_copy(made: Path, cluster: UUID) -> str:
    copy = shutil.copyfile(made / "edgewright.db", made.parent / f"{made.name}.db")
    async with open_database(f"sqlite+aiosqlite:///{copy}") as database:
        row = await Store.on(database).row(cluster)
        return str((row.spec.values or {})["commit"])


def restored_head(made: Path, root: Path) -> BareGitServer:
    for kept in checked_manifest(made).repositories:
        read_bundle(made / kept.file if kept.bundle else None, root / kept.place, kept.head)
    return BareGitServer(root)


def test_a_backup_that_fails_leaves_nothing_behind(home: StoppedHome) -> None:
    cluster = home.create()
    objects = home.git.folder(cluster) / "objects"
    next(path for path in objects.rglob("*") if path.is_file()).unlink()
    with pytest.raises(EdgewrightError):
        home.back_up()
    assert list(home.backups.iterdir()) == []


def test_a_backup_that_is_killed_leaves_nothing_under_its_name(home: StoppedHome, tmp_path: Path) -> None:
    home.create()
    git, reached = tmp_path / "bin" / "git", tmp_path / "reached"
    git.parent.mkdir()
    real = shutil.which("git")
    git.write_text(f'#!/bin/sh\ncase "$*" in *bundle*) : > "{reached}"; exec sleep 600 ;; esac\nexec {real} "$@"\n')
    git.chmod(0o755)
    path = f"{git.parent}:{home.environment()['PATH']}"
    typed = [*PROGRAM, "admin", "backup", str(home.backups)]
    running = subprocess.Popen(typed, env=home.environment(PATH=path), start_new_session=True)
    try:
        eventually(reached.exists, seconds=60)
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait(20)
    assert [path.name for path in home.backups.iterdir() if not path.name.startswith(".")] == []
    checked_manifest(home.back_up())


def test_the_command_says_where_the_backup_is(home: StoppedHome) -> None:
    done = home.command("admin", "backup", str(home.backups))
    assert done.returncode == 0, done.stderr
    [made] = home.backups.iterdir()
    assert done.stdout == f"Backup: {made}\n"
    checked_manifest(made)


def test_with_postgresql_the_dump_comes_first_and_no_password_is_shown(home: StoppedHome) -> None:
    url = "postgresql+asyncpg://edgewright:s3cr3t@db.example.com:5432/edgewright"
    refused = home.command("admin", "backup", str(home.backups), EDGEWRIGHT_DATABASE_URL=url)
    assert refused.returncode == 4
    assert "pg_dump --format=custom" in refused.stderr
    assert "'postgresql://edgewright@db.example.com:5432/edgewright'" in refused.stderr
    assert "s3cr3t" not in refused.stderr
    done = home.command("admin", "backup", str(home.backups), "--without-database", EDGEWRIGHT_DATABASE_URL=url)
    assert done.returncode == 0, done.stderr
    [made] = home.backups.iterdir()
    assert checked_manifest(made).database is None


def test_an_empty_home_has_nothing_to_back_up(tmp_path: Path) -> None:
    empty = StoppedHome(tmp_path / "empty", tmp_path / "backups")
    with pytest.raises(CliError, match="There is nothing to back up"):
        empty.back_up()
    assert not empty.backups.exists()
