"""A repository that is read whole: what a disk has lost or changed is named by its file."""

import subprocess
from pathlib import Path
from uuid import UUID

import pytest
from git import Repo
from loose_objects import object_file

from edgewright.adapters.git import inspection
from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.git.inspection import damage_of, places
from edgewright.ports.git_server import CommitId, CommitMessage

FILES = {"edo/cluster/flux.yaml": b"---\nkind: GitRepository\n", "by-hand/README.md": b"Yours.\n"}


@pytest.fixture
def head(server: BareGitServer, repository: UUID) -> CommitId:
    return server.commit(repository, FILES, CommitMessage("Populate", "desk"), expected_head=None)


def object_of(folder: Path, name: str) -> Path:
    path = object_file(folder, name)
    path.chmod(0o600)
    return path


def test_a_repository_without_a_commit_is_whole(server: BareGitServer, repository: UUID) -> None:
    assert damage_of(server.folder(repository)) is None


@pytest.mark.parametrize("packed", [False, True])
def test_a_repository_with_all_its_objects_is_whole(
    server: BareGitServer, repository: UUID, head: CommitId, packed: bool
) -> None:
    folder = server.folder(repository)
    if packed:
        subprocess.run(["git", f"--git-dir={folder}", "gc", "-q"], check=True, timeout=60)
    assert damage_of(folder, wanted=head) is None


def test_a_lost_file_is_named(server: BareGitServer, repository: UUID, head: CommitId) -> None:
    folder = server.folder(repository)
    object_of(folder, f"{head}:by-hand/README.md").unlink()
    assert damage_of(folder) == "Missing, or not what was written: by-hand/README.md."


def test_a_changed_file_is_named(server: BareGitServer, repository: UUID, head: CommitId) -> None:
    folder = server.folder(repository)
    blob = object_of(folder, f"{head}:edo/cluster/flux.yaml")
    blob.write_bytes(blob.read_bytes()[:-4] + b"----")
    assert damage_of(folder) == "Missing, or not what was written: edo/cluster/flux.yaml."


def test_what_has_no_name_any_more_is_told_by_its_id(server: BareGitServer, repository: UUID, head: CommitId) -> None:
    folder = server.folder(repository)
    tree = object_of(folder, f"{head}^{{tree}}")
    tree.unlink()
    damage = damage_of(folder)
    assert damage is not None
    assert f"object {tree.parent.name}{tree.name[:10]}" in damage


def test_a_pack_that_was_cut_off_is_damage(server: BareGitServer, repository: UUID, head: CommitId) -> None:
    folder = server.folder(repository)
    subprocess.run(["git", f"--git-dir={folder}", "gc", "-q"], check=True, timeout=60)
    [pack] = (folder / "objects" / "pack").glob("*.pack")
    pack.chmod(0o600)
    pack.write_bytes(pack.read_bytes()[:-30])
    assert damage_of(folder) is not None


def test_a_commit_that_the_edge_has_is_missed(server: BareGitServer, repository: UUID, head: CommitId) -> None:
    absent = "1" * 40
    assert damage_of(server.folder(repository), wanted=absent) == f"It lacks the commit {absent}, which its edge has."


def test_a_repository_without_its_head_is_found_and_named(
    server: BareGitServer, repository: UUID, head: CommitId
) -> None:
    folder = server.folder(repository)
    (folder / "HEAD").unlink()
    assert places(server.root) == [folder.name]
    assert damage_of(folder) == "It has lost its file HEAD, so Git does not recognise it."


def test_archived_repositories_are_found_too(server: BareGitServer, repository: UUID, head: CommitId) -> None:
    server.archive(repository)
    [place] = places(server.root)
    assert place.startswith("archive/")
    assert damage_of(server.root / place) is None


def test_a_repository_that_is_archived_meanwhile_is_not_damaged(server: BareGitServer, repository: UUID) -> None:
    folder = server.folder(repository)
    server.archive(repository)
    assert damage_of(folder) is None


def test_a_repository_that_is_archived_while_it_is_read_is_not_damaged(
    server: BareGitServer, repository: UUID, head: CommitId, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = inspection._complaint

    def archived_first(repo: Repo) -> str | None:
        server.archive(repository)
        return look(repo)

    monkeypatch.setattr(inspection, "_complaint", archived_first)
    assert damage_of(server.folder(repository), wanted=head) is None


def test_what_is_whole_when_it_is_looked_at_again_is_not_damaged(
    server: BareGitServer, repository: UUID, head: CommitId, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Objects move from one file to another while the centre packs them."""
    look, blob = inspection._complaint, object_of(server.folder(repository), f"{head}:by-hand/README.md")
    content = blob.read_bytes()
    blob.unlink()

    def and_back(repo: Repo) -> str | None:
        found = look(repo)
        blob.write_bytes(content)
        return found

    monkeypatch.setattr(inspection, "_complaint", and_back)
    assert damage_of(server.folder(repository), wanted=head) is None
