"""What only the real adapter promises: Git's own view of it, durability, and surviving what a crash leaves."""

import errno
import os
import subprocess
import threading
import time
import zlib
from pathlib import Path
from uuid import UUID, uuid4

import git as gitpython
import psutil
import pytest

from edgewright.adapters.git.bare import BareGitServer
from edgewright.errors import NotFound, Stalled, Waiting
from edgewright.ports.git_server import CommitId, CommitMessage, HeadMoved

BY_TEST = CommitMessage("Add files", "token:ci", [("Fence", "3/17")], body="Because.")
FILES = {
    "README.md": b"# hello\n",
    "edo/secrets/ns/a.yaml": b"a",
    "edo/secrets/ns/b.yaml": b"b",
    "by-hand/x": b"\xff\x00",
}


@pytest.fixture
def server(tmp_path: Path) -> BareGitServer:
    return BareGitServer(tmp_path / "git", clock=lambda: 1_700_000_000.9, patience=0.2)


@pytest.fixture
def repository(server: BareGitServer) -> UUID:
    name = uuid4()
    server.create_repository(name)
    return name


def put(server: BareGitServer, repository: UUID, changes: dict[str, bytes | None]) -> CommitId:
    return server.commit(repository, changes, BY_TEST, expected_head=server.head(repository))


def git(folder: Path, *arguments: str | Path) -> str:
    command = ["git", "-C", str(folder), *map(str, arguments)]
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(command, check=True, env=env, capture_output=True, text=True, timeout=60).stdout


def test_git_finds_nothing_wrong_and_clones_the_same_bytes(
    server: BareGitServer, repository: UUID, tmp_path: Path
) -> None:
    put(server, repository, dict(FILES))
    put(server, repository, {"edo/secrets/ns/a.yaml": None, "a-b": b"1", "a/b": b"2", "a.b": b"3"})
    folder = server.folder(repository)
    subprocess.run(["git", "--git-dir", folder, "fsck", "--strict", "--full"], check=True, timeout=60)
    git(tmp_path, "clone", "-q", folder, "work")
    found = {
        str(path.relative_to(tmp_path / "work")): path.read_bytes()
        for path in (tmp_path / "work").rglob("*")
        if path.is_file() and ".git" not in path.parts
    }
    expected = {**FILES, "a-b": b"1", "a/b": b"2", "a.b": b"3"}
    del expected["edo/secrets/ns/a.yaml"]
    assert found == expected


def test_tree_is_the_one_that_git_would_write(server: BareGitServer, repository: UUID, tmp_path: Path) -> None:
    put(server, repository, dict(FILES))
    head = put(server, repository, {"edo/z": b"1", "by-hand/x": b"2"})
    for path, content in {**FILES, "edo/z": b"1", "by-hand/x": b"2"}.items():
        file = tmp_path / "work" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    git(tmp_path, "init", "-q", "work")
    git(tmp_path / "work", "add", "-A")
    by_git = git(tmp_path / "work", "write-tree").strip()
    assert gitpython.Repo(server.folder(repository)).commit(head).tree.hexsha == by_git


def test_same_input_is_the_same_commit(server: BareGitServer) -> None:
    heads = []
    for _ in range(2):
        name = uuid4()
        server.create_repository(name)
        put(server, name, dict(FILES))
        heads.append(put(server, name, {"README.md": b"2"}))
    assert heads[0] == heads[1] == "e2508e6f8cd56c1291b1a936642d787ae92428a3"


def test_commit_reads_well_in_git(server: BareGitServer, repository: UUID) -> None:
    put(server, repository, dict(FILES))
    shown = git(server.folder(repository), "log", "-1", "--format=%an|%ae|%cn|%ce|%at|%ct|%B")
    assert shown.strip() == (
        "token:ci|token-ci@edgewright.invalid|Edgewright|edgewright@localhost|1700000000|1700000000|"
        "Add files\n\nBecause.\n\nFence: 3/17"
    )
    assert git(server.folder(repository), "log", "-1", "--format=%(trailers:key=Fence,valueonly)").strip() == "3/17"


def test_new_repository_has_only_what_git_needs(server: BareGitServer, repository: UUID) -> None:
    folder = server.folder(repository)
    assert sorted(path.name for path in folder.rglob("*") if path.is_file()) == ["HEAD", "config"]
    for key, value in {
        "core.bare": "true",
        "core.fsync": "all",
        "gc.auto": "0",
        "receive.fsckObjects": "true",
        "receive.denyNonFastForwards": "true",
        "receive.denyDeletes": "true",
        "transfer.fsckObjects": "true",
    }.items():
        assert git(folder, "config", key).strip() == value
    assert git(folder, "symbolic-ref", "HEAD").strip() == "refs/heads/main"


def test_creation_that_was_killed_half_way_is_cleared_away(tmp_path: Path) -> None:
    server = BareGitServer(tmp_path, stale_after=60)
    name = uuid4()
    old, fresh = (tmp_path / "new" / f"{name}-{age}" for age in ("old", "fresh"))
    for leftover in (old, fresh):
        (leftover / "objects").mkdir(parents=True)
    os.utime(old, (time.time() - 100,) * 2)
    server.create_repository(name)
    assert server.exists(name)
    assert not old.exists()
    assert fresh.exists(), "it may belong to a creation that is under way"


def test_creators_that_race_make_one_repository(tmp_path: Path) -> None:
    servers = [BareGitServer(tmp_path) for _ in range(6)]
    name = uuid4()
    threads = [threading.Thread(target=server.create_repository, args=[name]) for server in servers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert put(servers[0], name, {"a": b"1"}) == servers[1].head(name)
    assert list((tmp_path / "new").iterdir()) == []


def test_packed_repository_reads_the_same(server: BareGitServer, repository: UUID) -> None:
    first = put(server, repository, dict(FILES))
    second = put(server, repository, {"README.md": b"2"})
    git(server.folder(repository), "gc", "-q")
    assert not (server.folder(repository) / "refs/heads/main").exists(), "the ref itself is packed"
    assert server.head(repository) == second
    assert server.read(repository, "README.md", at=first) == FILES["README.md"]
    assert server.list(repository, "", at=second) == sorted(FILES)
    assert [entry.commit for entry in server.log(repository, limit=9)] == [second, first]
    assert server.is_ancestor(repository, first, second)
    third = put(server, repository, {"README.md": b"3"})
    assert server.head(repository) == third
    assert server.list(repository, "", at=third) == sorted(FILES)


def test_reading_packed_objects_leaves_no_process_and_no_open_file(server: BareGitServer, repository: UUID) -> None:
    put(server, repository, dict(FILES))
    git(server.folder(repository), "gc", "-q")
    head = server.head(repository)
    assert head is not None
    server.read(repository, "README.md", at=head)
    before = (psutil.Process().num_fds(), len(psutil.Process().children()))
    for _ in range(20):
        server.list(repository, "", at=head)
        server.log(repository, limit=1)
    assert (psutil.Process().num_fds(), len(psutil.Process().children())) == before


def test_merge_by_hand_appears_in_the_log(server: BareGitServer, repository: UUID, tmp_path: Path) -> None:
    first = put(server, repository, dict(FILES))
    folder = server.folder(repository)
    tree = git(folder, "rev-parse", "HEAD^{tree}").strip()
    env = ["-c", "user.name=Ann", "-c", "user.email=a@example.com"]
    side = git(folder, *env, "commit-tree", tree, "-p", first, "-m", "Side").strip()
    merge = git(folder, *env, "commit-tree", tree, "-p", first, "-p", side, "-m", "Merge").strip()
    git(folder, "update-ref", "refs/heads/main", merge)
    log = server.log(repository, limit=9)
    assert [entry.commit for entry in log] == [merge, side, first]
    assert [entry.author for entry in log] == ["Ann", "Ann", "token:ci"]
    assert server.is_ancestor(repository, side, merge)


def test_mode_and_symbolic_links_by_hand_survive_commits(
    server: BareGitServer, repository: UUID, tmp_path: Path
) -> None:
    put(server, repository, dict(FILES))
    git(tmp_path, "clone", "-q", server.folder(repository), "work")
    (tmp_path / "work/by-hand/x").chmod(0o755)
    (tmp_path / "work/by-hand/link").symlink_to("x")
    git(tmp_path / "work", "add", "-A")
    git(tmp_path / "work", "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "x")
    git(tmp_path / "work", "push", "-q", "origin", "HEAD:main")
    put(server, repository, {"by-hand/x": b"changed", "edo/new": b"1"})
    rows = git(server.folder(repository), "ls-tree", "main", "by-hand/").splitlines()
    assert [row.split()[0] for row in rows] == ["120000", "100755"]


def test_bytes_are_on_disk_before_the_ref_moves(
    server: BareGitServer, repository: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every object: its bytes, then its name; then the ref's bytes; then the ref's name."""
    put(server, repository, dict(FILES))
    folder = server.folder(repository)
    synced: list[str] = []
    known = {path for path in folder.rglob("*") if path.is_file()}
    head = server.head(repository)
    fsync = os.fsync

    def record(descriptor: int) -> None:
        fsync(descriptor)
        target = Path(f"/proc/self/fd/{descriptor}").readlink()
        # Nobody who looks at the ref now may find a commit that a power cut could take back.
        assert server.head(repository) == head or str(target).endswith("refs/heads")
        synced.append(str(target.relative_to(folder)))

    monkeypatch.setattr(os, "fsync", record)
    put(server, repository, {"edo/secrets/ns/new.yaml": b"new", "by-hand/y": b"y"})
    written = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()} - {
        path.relative_to(folder) for path in known
    }
    objects = {path for path in written if path.parts[0] == "objects"}
    assert len(objects) == 8  # two blobs, five trees, a commit
    contents = [place for place, name in enumerate(synced) if "tmp_obj_" in name]
    assert len(contents) == len(objects)
    for path in objects:
        assert synced.index(str(path.parent)) > max(contents)
    assert synced[-2:] == ["refs/heads/main.lock", "refs/heads"]
    assert "objects" in synced


def test_object_that_a_power_cut_emptied_is_written_again(server: BareGitServer, repository: UUID) -> None:
    put(server, repository, dict(FILES))
    folder = server.folder(repository)
    blob = git(folder, "rev-parse", "main:README.md").strip()
    path = folder / "objects" / blob[:2] / blob[2:]
    for damage in (b"", zlib.compress(b"blob 8\0other..."), path.read_bytes()[:5]):
        path.chmod(0o644)
        path.write_bytes(damage)
        put(server, repository, {"copy": None})
        put(server, repository, {"copy": FILES["README.md"]})
        head = server.head(repository)
        assert head is not None
        assert server.read(repository, "README.md", at=head) == FILES["README.md"]
        put(server, repository, {"copy": None})


def test_damage_is_named_and_not_retried(server: BareGitServer, repository: UUID) -> None:
    head = put(server, repository, dict(FILES))
    folder = server.folder(repository)
    path = folder / "objects" / head[:2] / head[2:]
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(Stalled) as refusal:
        server.list(repository, "", at=head)
    assert refusal.value.code == "repository_damaged"
    (folder / "refs/heads/main").write_bytes(b"\0" * 41)
    with pytest.raises(Stalled):
        server.head(repository)


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
    server.upkeep(name)
    assert not list(packs.glob("*.pack"))
    put(server, name, {f"f/{n}": str(n).encode() for n in range(600)})
    server.upkeep(name)
    assert len(list(packs.glob("*.pack"))) == 1
    assert list((server.folder(name) / "objects").glob("??/*")) == []


def test_upkeep_keeps_what_nobody_points_to_yet(tmp_path: Path) -> None:
    """Objects of a commit that is being written are unreachable until its ref moves."""
    server = BareGitServer(tmp_path, loose_limit=0)
    name = uuid4()
    server.create_repository(name)
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
    assert len(server.log(name, limit=100)) == 41
    subprocess.run(["git", "--git-dir", server.folder(name), "fsck", "--strict"], check=True, timeout=60)


def test_interrupted_pushes_are_cleared_away_after_a_day(server: BareGitServer, repository: UUID) -> None:
    objects = server.folder(repository) / "objects"
    old, fresh = objects / "tmp_objdir-incoming-old", objects / "tmp_objdir-incoming-new"
    for leftover in (old, fresh):
        (leftover / "pack").mkdir(parents=True)
    os.utime(old, (time.time() - 90_000,) * 2)
    server.upkeep(repository)
    assert (old.exists(), fresh.exists()) == (False, True)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EIO])
def test_storage_that_fails_means_waiting_and_leaves_no_trace(
    server: BareGitServer, repository: UUID, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    head = put(server, repository, {"a": b"1"})
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
    [archived] = (tmp_path / "archive").iterdir()
    subprocess.run(["git", "--git-dir", archived, "fsck", "--strict"], check=True, timeout=60)
    assert archived.name == f"{name}-{git(archived, 'rev-parse', 'main').strip()}.git"
