"""What only the real adapter promises: Git's own view of it, and bytes that are on disk."""

import os
import subprocess
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from uuid import UUID, uuid4

import git as gitpython
import psutil
import pytest
from loose_objects import object_file

from edgewright.adapters.git.bare import BareGitServer
from edgewright.errors import NotFound, Stalled, Waiting
from edgewright.ports.git_server import CommitId, CommitMessage

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
    assert len(server.log(repository, limit=9, back_to=[merge])) == 3, "whose clock orders them is not known"


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
    assert synced[-2:] == ["edgewright.draft", "refs/heads"]
    assert "objects" in synced


def test_object_that_a_power_cut_emptied_is_written_again(server: BareGitServer, repository: UUID) -> None:
    put(server, repository, dict(FILES))
    folder = server.folder(repository)
    path = object_file(folder, "main:README.md")
    for damage in (b"", zlib.compress(b"blob 8\0other..."), path.read_bytes()[:5]):
        path.chmod(0o644)
        path.write_bytes(damage)
        put(server, repository, {"copy": None})
        put(server, repository, {"copy": FILES["README.md"]})
        head = server.head(repository)
        assert head is not None
        assert server.read(repository, "README.md", at=head) == FILES["README.md"]
        put(server, repository, {"copy": None})


def remove_object(server: BareGitServer, repository: UUID, revision: str) -> None:
    object_file(server.folder(repository), revision).unlink()


def test_file_whose_content_is_missing_is_damage_and_not_a_missing_file(
    server: BareGitServer, repository: UUID
) -> None:
    head = put(server, repository, {"a/b": b"content", "a/c": b"other"})
    remove_object(server, repository, "main:a/b")
    with pytest.raises(Stalled, match="content of a/b is missing") as refusal:
        server.read(repository, "a/b", at=head)
    assert refusal.value.code == "repository_damaged"
    assert server.read(repository, "a/c", at=head) == b"other"
    assert server.list(repository, "a", at=head) == ["a/b", "a/c"]


def test_missing_commit_of_main_is_damage(server: BareGitServer, repository: UUID) -> None:
    first = put(server, repository, {"a": b"1"})
    head = put(server, repository, {"a": b"2"})
    remove_object(server, repository, first)
    with pytest.raises(NotFound):
        server.read(repository, "a", at=first)
    with pytest.raises(Stalled, match=f"commit {first} of main is missing"):
        server.log(repository, limit=5)
    remove_object(server, repository, head)
    calls: list[Callable[[], object]] = [
        lambda: server.read(repository, "a", at=head),
        lambda: server.list(repository, "", at=head),
        lambda: put(server, repository, {"b": b"1"}),
        lambda: server.log(repository, limit=1),
    ]
    for call in calls:
        with pytest.raises(Stalled, match=f"commit {head} of main is missing"):
            call()


def test_repository_without_its_head_is_named_and_goes_on_once_that_is_back(
    server: BareGitServer, repository: UUID
) -> None:
    head = put(server, repository, {"a": b"1"})
    (server.folder(repository) / "HEAD").unlink()
    calls: list[Callable[[], object]] = [
        lambda: server.exists(repository),
        lambda: server.head(repository),
        lambda: server.create_repository(repository),
        lambda: server.folder(repository),
    ]
    for call in calls:
        with pytest.raises(Waiting, match="lost its file HEAD") as trouble:
            call()
        assert trouble.value.code == "repository_headless"
    (server.root / f"{repository}.git" / "HEAD").write_text("ref: refs/heads/main\n")
    assert server.head(repository) == head


def test_damage_is_named_and_not_retried(server: BareGitServer, repository: UUID) -> None:
    head = put(server, repository, dict(FILES))
    folder = server.folder(repository)
    path = object_file(folder, head)
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(Stalled) as refusal:
        server.list(repository, "", at=head)
    assert refusal.value.code == "repository_damaged"
    (folder / "refs/heads/main").write_bytes(b"\0" * 41)
    with pytest.raises(Stalled):
        server.head(repository)
