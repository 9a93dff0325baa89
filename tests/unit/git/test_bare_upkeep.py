"""What a real repository survives: locks, repacks, full disks, and being archived under its writers."""

import errno
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from gitdb.db.loose import LooseObjectDB  # type: ignore[import-untyped]  # gitdb ships no types
from gitdb.exc import BadObject  # type: ignore[import-untyped]  # gitdb ships no types

from edgewright.adapters.git import objects
from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.git.commands import git_environment
from edgewright.adapters.git.packs import PackFiles
from edgewright.errors import NotFound, Waiting
from edgewright.ports.git_server import CommitId, CommitMessage, HeadMoved

BY_TEST = CommitMessage("Add files", "token:ci", [("Fence", "3/17")], body="Because.")
FILES = {
    "README.md": b"# hello\n",
    "edo/secrets/ns/a.yaml": b"a",
    "edo/secrets/ns/b.yaml": b"b",
    "by-hand/x": b"\xff\x00",
}


def put(server: BareGitServer, repository: UUID, changes: dict[str, bytes | None]) -> CommitId:
    return server.commit(repository, changes, BY_TEST, expected_head=server.head(repository))


def git(folder: Path, *arguments: str | Path) -> str:
    command = ["git", "-C", str(folder), *map(str, arguments)]
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(command, check=True, env=env, capture_output=True, text=True, timeout=60).stdout


def test_commit_waits_for_a_lock_and_gives_up(server: BareGitServer, repository: UUID) -> None:
    head = put(server, repository, {"a": b"1"})
    lock = server.folder(repository) / "refs/heads/main.lock"
    lock.touch()
    with pytest.raises(Waiting) as refusal:
        put(server, repository, {"a": b"2"})
    assert refusal.value.code == "repository_busy"
    assert server.head(repository) == head
    server.upkeep(repository)
    assert lock.exists(), "its owner may be alive"
    threading.Timer(0.05, lock.unlink).start()
    assert put(server, repository, {"a": b"2"}) != head


def test_stale_locks_are_removed_by_upkeep(server: BareGitServer, repository: UUID) -> None:
    put(server, repository, {"a": b"1"})
    folder = server.folder(repository)
    locks = [folder / name for name in ("refs/heads/main.lock", "packed-refs.lock", "HEAD.lock", "config.lock")]
    for lock in locks:
        lock.touch()
        os.utime(lock, (time.time() - 61,) * 2)
    server.upkeep(repository)
    assert not any(lock.exists() for lock in locks)


def test_stale_lock_does_not_hold_a_commit_up_until_the_next_upkeep(server: BareGitServer, repository: UUID) -> None:
    put(server, repository, {"a": b"1"})
    lock = server.folder(repository) / "refs/heads/main.lock"
    lock.touch()
    os.utime(lock, (time.time() - 61,) * 2)
    put(server, repository, {"a": b"2"})
    assert not lock.exists()


def test_upkeep_packs_only_when_it_is_worth_it(tmp_path: Path) -> None:
    server = BareGitServer(tmp_path, loose_limit=100)
    name = uuid4()
    server.create_repository(name)
    packs = server.folder(name) / "objects" / "pack"
    put(server, name, {"a": b"1"})
    first = list(packs.glob("*.pack"))
    put(server, name, {"a": b"2"})
    server.upkeep(name)
    assert list(packs.glob("*.pack")) == first
    put(server, name, {f"f/{n}": str(n).encode() for n in range(600)})
    server.upkeep(name)
    [pack] = packs.glob("*.pack")
    assert pack not in first
    assert list((server.folder(name) / "objects").glob("??/*")) == []


def test_upkeep_keeps_what_nobody_points_to_yet(tmp_path: Path) -> None:
    """Objects of a commit that is being written are unreachable until its ref moves."""
    server = BareGitServer(tmp_path, loose_limit=0)
    name = uuid4()
    server.create_repository(name)
    put(server, name, {"first": b""})
    put(server, name, {f"f/{n}": str(n).encode() for n in range(200)})
    folder = server.folder(name)
    done = subprocess.run(
        ["git", "--git-dir", folder, "hash-object", "-w", "--stdin"],
        input=b"floating",
        capture_output=True,
        check=True,
    )
    server.upkeep(name)
    assert git(folder, "cat-file", "blob", done.stdout.decode().strip()) == "floating"


def test_commits_go_on_while_the_repository_is_repacked(tmp_path: Path) -> None:
    server = BareGitServer(tmp_path, loose_limit=0)
    name = uuid4()
    server.create_repository(name)
    put(server, name, {"first": b""})
    put(server, name, {f"f/{n}": str(n).encode() for n in range(100)})
    stop = threading.Event()
    failures: list[BaseException] = []

    def repack() -> None:
        while not stop.is_set():
            try:
                server.upkeep(name)
            except BaseException as error:
                failures.append(error)
                raise

    thread = threading.Thread(target=repack)
    thread.start()
    try:
        for number in range(40):
            put(server, name, {f"f/{number}": b"new", f"g/{number}": b"x"})
    finally:
        stop.set()
        thread.join()
    assert failures == []
    assert len(server.log(name, limit=100)) == 42
    subprocess.run(["git", "--git-dir", server.folder(name), "fsck", "--strict"], check=True, timeout=60)


def test_interrupted_pushes_are_cleared_away_after_a_day(server: BareGitServer, repository: UUID) -> None:
    objects = server.folder(repository) / "objects"
    old, fresh = objects / "tmp_objdir-incoming-old", objects / "tmp_objdir-incoming-new"
    for leftover in (old, fresh):
        (leftover / "pack").mkdir(parents=True)
    os.utime(old, (time.time() - 90_000,) * 2)
    server.upkeep(repository)
    assert (old.exists(), fresh.exists()) == (False, True)


@pytest.mark.parametrize("first", [True, False], ids=["first", "later"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EIO])
def test_storage_that_fails_means_waiting_and_leaves_no_trace(
    server: BareGitServer, repository: UUID, monkeypatch: pytest.MonkeyPatch, number: int, first: bool
) -> None:
    head = None if first else put(server, repository, {"a": b"1"})
    before = sorted(path for path in server.folder(repository).rglob("*") if path.is_file())

    def fail(descriptor: int) -> None:
        raise OSError(number, os.strerror(number), "/secret/path")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(Waiting) as refusal:
        put(server, repository, {"a": b"2"})
    monkeypatch.undo()
    assert refusal.value.code == "git_unavailable"
    assert os.strerror(number).lower() in refusal.value.detail.lower()
    assert server.head(repository) == head
    assert sorted(path for path in server.folder(repository).rglob("*") if path.is_file()) == before
    assert put(server, repository, {"a": b"2"}) != head


def test_root_that_cannot_be_made_means_waiting(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Waiting) as refusal:
        BareGitServer(tmp_path / "file" / "git").create_repository(uuid4())
    assert refusal.value.code == "git_unavailable"


def test_missing_git_means_waiting_and_says_so(
    server: BareGitServer, repository: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = put(server, repository, {"a": b"1"})
    second = put(server, repository, {"a": b"2"})
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(Waiting) as refusal:
        server.is_ancestor(repository, first, second)
    assert refusal.value.detail == "Git storage cannot be used: the program git was not found on PATH."


def test_foreign_git_variables_do_not_lead_astray(
    server: BareGitServer, repository: UUID, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A server that was started from within somebody's hook inherits that repository's variables."""
    for name in ("GIT_DIR", "GIT_OBJECT_DIRECTORY", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'broken")
    first = put(server, repository, {"a": b"1"})
    second = put(server, repository, {"a": b"2"})
    assert server.is_ancestor(repository, first, second)


def test_archive_keeps_the_bytes_under_the_head(server: BareGitServer, repository: UUID) -> None:
    head = put(server, repository, dict(FILES))
    server.archive(repository)
    archived = server.root / "archive" / f"{repository}-{head}.git"
    assert git(archived, "show", "main:README.md").encode() == FILES["README.md"]
    server.create_repository(repository)
    assert put(server, repository, dict(FILES)) == head
    server.archive(repository)
    assert (server.root / "archive" / f"{repository}-{head}-2.git").is_dir()
    server.create_repository(repository)
    server.archive(repository)
    assert (server.root / "archive" / f"{repository}-empty.git").is_dir()
    assert archived.is_dir()


def test_a_commit_whose_repository_is_archived_in_the_middle_finds_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = BareGitServer(tmp_path)
    name = uuid4()
    server.create_repository(name)
    head = put(server, name, {"a": b"0"})
    git_program = git_environment

    def archived_meanwhile(*arguments: Any) -> Any:
        server.archive(name)
        return git_program(*arguments)

    monkeypatch.setattr(objects, "git_environment", archived_meanwhile)
    monkeypatch.setattr(LooseObjectDB, "stream", absent)
    monkeypatch.setattr(PackFiles, "read", delta)
    with pytest.raises(NotFound) as gone:
        server.commit(name, {"a": b"1"}, BY_TEST, expected_head=head)
    assert gone.value.code == "repository_unknown"


def absent(_store: object, object_id: bytes) -> None:
    """The object is packed."""
    raise BadObject(object_id)


def delta(_packs: object, _object_id: str) -> None:
    """It is a delta there, so that git is asked for it."""


def test_archive_during_commits_tears_nothing(tmp_path: Path) -> None:
    server = BareGitServer(tmp_path)
    name = uuid4()
    server.create_repository(name)
    head = put(server, name, {"a": b"0"})
    ends: list[type[BaseException]] = []

    def write() -> None:
        for number in range(1000):
            try:
                put(server, name, {"a": str(number).encode()})
            except HeadMoved:
                continue
            except NotFound as error:
                ends.append(type(error))
                return

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    while server.head(name) == head:
        pass
    server.archive(name)
    for thread in threads:
        thread.join()
    assert ends == [NotFound, NotFound]
    [archived] = (tmp_path / "archive").glob("*.git")
    subprocess.run(["git", "--git-dir", archived, "fsck", "--strict"], check=True, timeout=60)
    assert archived.name == f"{name}-{git(archived, 'rev-parse', 'main').strip()}.git"
