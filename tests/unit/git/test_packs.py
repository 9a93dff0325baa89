"""A first commit is one pack, as good as one of Git's; and packs are read without a process of git."""

import hashlib
import os
import subprocess
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgewright.adapters.git import objects
from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.git.packs import LARGEST, PackFiles, write_pack
from edgewright.errors import Stalled, Waiting
from edgewright.ports.git_server import CommitId, CommitMessage

BY_TEST = CommitMessage("Add files", "token:ci")
FILES = {
    "README.md": b"# hello\n",
    "edo/cluster/flux.yaml": b"kind: Kustomization\n" * 100,
    "edo/secrets/ns/a.yaml": b"a",
    "by-hand/empty": b"",
}


def put(server: BareGitServer, repository: UUID, changes: dict[str, bytes | None]) -> CommitId:
    return server.commit(repository, changes, BY_TEST, expected_head=server.head(repository))


def git(folder: Path, *arguments: str | Path) -> str:
    env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-C", folder, *arguments]
    return subprocess.run(command, check=True, env=env, capture_output=True, text=True, timeout=60).stdout


def files_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def pack_in(folder: Path, written: dict[str, tuple[str, bytes]]) -> Path:
    """Writes a pack; returns its index."""
    with (folder / "pack").open("wb") as pack, (folder / "index").open("wb") as index:
        name = write_pack(written, pack.write, index.write)
    (folder / "pack").rename(folder / f"{name}.pack")
    return (folder / "index").rename(folder / f"{name}.idx")


def read_from(folder: Path, object_id: str) -> tuple[str, bytes] | None:
    files = PackFiles(folder)
    try:
        return files.read(object_id)
    finally:
        files.close()


def without_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")


def test_first_commit_is_one_pack_and_later_ones_are_loose(server: BareGitServer, repository: UUID) -> None:
    head = put(server, repository, dict(FILES))
    folder = server.folder(repository)
    found = files_in(folder)
    [pack] = (name for name in found if name.endswith(".pack"))
    others = ["HEAD", "config", "edgewright.writer", pack, pack.replace(".pack", ".idx"), "refs/heads/main"]
    assert found == sorted(others)
    assert {(folder / name).stat().st_mode & 0o777 for name in others if "/pack/" in name} == {0o444}
    listed = git(folder, "rev-list", "--objects", head).split("\n")
    assert f"\nnon delta: {len(listed) - 1} objects\n" in git(folder, "verify-pack", "-v", folder / pack)
    put(server, repository, {"README.md": b"2"})
    assert len(files_in(folder)) == len(others) + 3, "a blob, a tree and a commit"


def test_git_finds_nothing_wrong_with_it_and_makes_the_same_index(
    server: BareGitServer, repository: UUID, tmp_path: Path
) -> None:
    put(server, repository, {f"f/{number}": str(number).encode() * number for number in range(600)})
    folder = server.folder(repository)
    assert git(folder, "fsck", "--strict", "--full") == ""
    [pack] = (folder / "objects" / "pack").glob("*.pack")
    git(folder, "index-pack", "-o", tmp_path / "by-git.idx", pack)
    assert (tmp_path / "by-git.idx").read_bytes() == pack.with_suffix(".idx").read_bytes()


def test_it_is_cloned_pushed_to_and_repacked_by_git(server: BareGitServer, repository: UUID, tmp_path: Path) -> None:
    head = put(server, repository, dict(FILES))
    folder, work = server.folder(repository), tmp_path / "work"
    git(tmp_path, "clone", "-q", folder, work)
    assert {path: (work / path).read_bytes() for path in FILES} == FILES
    (work / "by-hand/mine").write_text("mine")
    git(work, "add", "-A")
    git(work, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "-m", "By hand")
    git(work, "push", "-q", "origin", "HEAD:main")
    after = put(server, repository, {"README.md": b"2"})
    git(folder, "gc", "-q", "--prune=now")
    assert git(folder, "fsck", "--strict", "--full") == ""
    assert [entry.commit for entry in server.log(repository, limit=9)][::2] == [after, head]
    assert server.read(repository, "by-hand/mine", at=after) == b"mine"
    assert server.read(repository, "README.md", at=head) == FILES["README.md"]


def test_a_pack_is_read_and_built_upon_without_a_process(
    server: BareGitServer, repository: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_git(monkeypatch)
    head = put(server, repository, dict(FILES))
    assert {path: server.read(repository, path, at=head) for path in server.list(repository, "", at=head)} == FILES
    second = put(server, repository, {"edo/secrets/ns/b.yaml": b"b"})
    assert [entry.commit for entry in server.log(repository, limit=9)] == [second, head]


def test_bytes_of_a_first_commit_are_on_disk_before_its_ref(
    server: BareGitServer, repository: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pack and index: their bytes, then their names; then the ref's bytes; then the ref's name."""
    folder, synced = server.folder(repository), list[str]()
    fsync = os.fsync

    def record(descriptor: int) -> None:
        fsync(descriptor)
        target = Path(f"/proc/self/fd/{descriptor}").readlink()
        assert server.head(repository) is None or target.name == "heads"
        named = {path.suffix for path in (folder / "objects" / "pack").glob("pack-*")}
        assert named == (set() if "tmp_" in target.name else {".pack", ".idx"})
        synced.append(target.relative_to(folder).as_posix().split("tmp_")[0])

    monkeypatch.setattr(os, "fsync", record)
    put(server, repository, dict(FILES))
    assert synced == ["objects/pack/", "objects/pack/", "objects/pack", "edgewright.draft", "refs/heads"]


def test_a_large_file_of_a_first_commit_is_loose(server: BareGitServer, repository: UUID) -> None:
    large = os.urandom(LARGEST + 1)
    head = put(server, repository, {"large": large, "just": large[1:], "small": b"1"})
    blob = git(server.folder(repository), "rev-parse", "main:large").strip()
    assert [name for name in files_in(server.folder(repository) / "objects") if "pack" not in name] == [
        f"{blob[:2]}/{blob[2:]}"
    ]
    assert server.read(repository, "large", at=head) == large
    assert server.read(repository, "just", at=head) == large[1:]


def test_what_a_pack_has_no_room_for_is_loose(
    server: BareGitServer, repository: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objects, "ROOM", 1000)
    files: dict[str, bytes | None] = {str(number): os.urandom(300) for number in range(9)}
    head = put(server, repository, files)
    assert git(server.folder(repository), "fsck", "--strict", "--full") == ""
    loose = [name for name in files_in(server.folder(repository) / "objects") if "pack" not in name]
    assert 6 <= len(loose) <= 8
    assert {path: server.read(repository, path, at=head) for path in files} == files


SIZES = st.one_of(st.integers(0, 40), st.sampled_from([2047, 2048, 4000, 4096, 5000, 40_000, LARGEST]))


@given(st.lists(st.tuples(SIZES, st.sampled_from(["blob", "tree", "commit"]), st.booleans()), min_size=1, max_size=6))
def test_what_is_written_into_a_pack_is_read_of_it(
    tmp_path_factory: pytest.TempPathFactory, wanted: list[tuple[int, str, bool]]
) -> None:
    written: dict[str, tuple[str, bytes]] = {}
    for size, kind, random in wanted:
        content = os.urandom(size) if random else bytes(size)
        header = f"{kind} {size}\0".encode()
        written[hashlib.sha1(header + content, usedforsecurity=False).hexdigest()] = (kind, content)
    folder = tmp_path_factory.mktemp("packs")
    pack_in(folder, written)
    files = PackFiles(folder)
    assert {each: files.read(each) for each in written} == written
    assert {files.read(each) for each in ("0" * 40, "f" * 40, "00" * 19 + "01")} == {None}
    files.close()


def test_what_is_a_delta_or_large_is_left_to_git(
    server: BareGitServer, repository: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = b"".join(b"line %d\n" % number for number in range(3000))
    first = put(server, repository, {"a": text})
    head = put(server, repository, {"a": text + b"more\n", "large": bytes(LARGEST + 1)})
    git(server.folder(repository), "gc", "-q")
    assert server.read(repository, "a", at=first) == text
    assert server.read(repository, "a", at=head) == text + b"more\n"
    assert server.read(repository, "large", at=head) == bytes(LARGEST + 1)
    without_git(monkeypatch)
    with pytest.raises(Waiting, match="git was not found"):
        server.read(repository, "large", at=head)
    with pytest.raises(Waiting, match="git was not found"):
        {commit: server.read(repository, "a", at=commit) for commit in (first, head)}


def test_an_object_that_claims_to_be_small_is_not_inflated_to_its_end(tmp_path: Path) -> None:
    pack = pack_in(tmp_path, {"ab" * 20: ("blob", bytes(LARGEST))}).with_suffix(".pack")
    assert read_from(tmp_path, "ab" * 20) == ("blob", bytes(LARGEST))
    content = pack.read_bytes()
    header = content[12 : content.index(b"\x78", 12)]
    claims = bytes([header[0] & 0xF0 | 0x85, *[0x80] * (len(header) - 2), 0])  # five bytes, in as many groups
    pack.write_bytes(content.replace(header, claims, 1))
    assert read_from(tmp_path, "ab" * 20) is None


@pytest.mark.parametrize("ending", [".pack", ".idx"])
@pytest.mark.parametrize("left", [0, 7, 40, 0.5, None], ids=str)
def test_a_damaged_pack_is_damage(server: BareGitServer, repository: UUID, ending: str, left: float | None) -> None:
    """Cut off after so many bytes, in the middle, or gone."""
    head = put(server, repository, {f"f/{number}": os.urandom(100) for number in range(30)})
    [file] = (server.folder(repository) / "objects" / "pack").glob(f"*{ending}")
    content = file.read_bytes()
    file.unlink()
    if left is not None:
        file.write_bytes(content[: int(left) if left != 0.5 else len(content) // 2])
    with pytest.raises(Stalled) as damage:
        [server.read(repository, path, at=head) for path in server.list(repository, "", at=head)]
    assert damage.value.code == "repository_damaged"


def test_a_changed_byte_in_a_pack_is_damage(server: BareGitServer, repository: UUID) -> None:
    head = put(server, repository, {"a": os.urandom(5000)})
    [pack] = (server.folder(repository) / "objects" / "pack").glob("*.pack")
    content = bytearray(pack.read_bytes())
    content[2500] ^= 0xFF
    pack.chmod(0o644)
    pack.write_bytes(content)
    with pytest.raises(Stalled) as damage:
        server.read(repository, "a", at=head)
    assert damage.value.code == "repository_damaged"


def test_an_index_of_another_version_is_left_to_git(
    server: BareGitServer, repository: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = put(server, repository, dict(FILES))
    folder = server.folder(repository)
    [pack] = (folder / "objects" / "pack").glob("*.pack")
    pack.with_suffix(".idx").unlink()
    git(folder, "index-pack", "--index-version=1", pack)
    assert server.read(repository, "README.md", at=head) == FILES["README.md"]
    without_git(monkeypatch)
    with pytest.raises(Waiting, match="git was not found"):
        server.read(repository, "README.md", at=head)


def test_upkeep_keeps_a_pack_whose_index_was_lost_and_git_makes_that_anew(
    server: BareGitServer, repository: UUID
) -> None:
    head = put(server, repository, dict(FILES))
    folder = server.folder(repository)
    [pack] = (folder / "objects" / "pack").glob("*.pack")
    pack.with_suffix(".idx").unlink()
    os.utime(pack, (0, 0))
    with pytest.raises(Stalled):
        server.read(repository, "README.md", at=head)
    server.upkeep(repository)
    git(folder, "index-pack", pack)
    assert server.read(repository, "README.md", at=head) == FILES["README.md"]


def test_places_that_need_more_than_four_bytes_are_left_to_git(tmp_path: Path) -> None:
    index = pack_in(tmp_path, {"ab" * 20: ("blob", b"1")})
    assert read_from(tmp_path, "ab" * 20) == ("blob", b"1")
    content = bytearray(index.read_bytes())
    place = content.index(bytes(3) + bytes([12]), len(content) - 48)
    content[place] |= 0x80
    index.write_bytes(content)
    assert read_from(tmp_path, "ab" * 20) is None
