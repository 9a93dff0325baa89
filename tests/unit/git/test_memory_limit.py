"""What git needs for the centre's own reads and repacks is bounded, and said when it is not enough."""

import subprocess
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from edgewright.adapters.git import objects
from edgewright.adapters.git.bare import BareGitServer
from edgewright.adapters.git.commands import run_git
from edgewright.adapters.git.memory_limit import MIB, UPKEEP_MEMORY
from edgewright.adapters.git.timed import TimedGit
from edgewright.errors import Waiting
from edgewright.ports.git_server import CommitMessage

LARGE = 48 * MIB


@pytest.fixture
def server(tmp_path: Path) -> BareGitServer:
    return BareGitServer(tmp_path)


@pytest.fixture
def repository(server: BareGitServer) -> UUID:
    """With a large file in a pack, where it takes little."""
    name = uuid4()
    server.create_repository(name)
    message = CommitMessage("Change", "edgewright")
    server.commit(name, {"by-hand/large": bytes(LARGE)}, message, expected_head=None)
    subprocess.run(["git", "--git-dir", server.folder(name), "gc", "--quiet"], check=True, timeout=60)
    return name


def test_whatever_the_centre_has_git_do_runs_under_the_limit(server: BareGitServer, repository: UUID) -> None:
    shown = ["-c", "alias.limits=!cat /proc/self/limits", "limits"]
    lines = run_git(server.folder(repository), shown, timeout=30).stdout.decode().splitlines()
    (line,) = (line for line in lines if line.startswith("Max data size"))
    assert line.split()[3:5] == [str(UPKEEP_MEMORY), str(UPKEEP_MEMORY)]


def test_command_that_hits_the_limit_says_so(server: BareGitServer, repository: UUID) -> None:
    large = ["cat-file", "-p", "main:by-hand/large"]
    assert len(run_git(server.folder(repository), large, timeout=30).stdout) == LARGE
    with pytest.raises(Waiting) as refusal:
        run_git(server.folder(repository), ["-c", "core.bigFileThreshold=1g", *large], timeout=30, memory=32 * MIB)
    assert refusal.value.code == "git_memory_limit"
    assert "(32 MiB)" in refusal.value.detail
    assert refusal.value.hint is not None


def test_read_that_hits_the_limit_says_so_and_is_counted(
    server: BareGitServer, repository: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[str] = []
    git = TimedGit(server, lambda _operation, _seconds: None, counted.append)
    head = server.head(repository)
    assert head is not None
    assert git.read(repository, "by-hand/large", at=head) == bytes(LARGE)
    assert counted == []
    monkeypatch.setattr(objects, "READ_MEMORY", 32 * MIB)
    with pytest.raises(Waiting) as refusal:
        git.read(repository, "by-hand/large", at=head)
    assert (refusal.value.code, counted) == ("git_memory_limit", ["read"])
